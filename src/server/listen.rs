//! Sockets to listen at, and the threads that accept.
//!
//! Must stay true: connections are dealt out to the shards in turns, so they spread evenly whatever their addresses;
//! where the server cannot listen at other addresses, it goes on at those it had.
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use crate::config::{P, Settings};
use crate::rt::log::{Level, line};
use crate::shard::Shared;
use crate::shard::msg::Control;

/// Opens a socket for every address of `bind`. An address with a leading minus may be unavailable.
///
/// # Errors
/// A sentence that names the address and the reason.
pub fn open(settings: &Settings) -> Result<Vec<TcpListener>, String> {
    let mut listeners = Vec::new();
    let mut port = settings.int(P::PORT) as u16;
    for address in settings.addresses() {
        let text = String::from_utf8_lossy(address);
        let (optional, name) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, &*text),
        };
        match parse_address(name).and_then(|ip| bind(SocketAddr::new(ip, port), settings)) {
            Ok(listener) => {
                // With port 0 the first socket decides, and the others follow.
                port = listener.local_addr().map_or(port, |a| a.port());
                listeners.push(listener);
            }
            Err(_) if optional => {}
            Err(error) => {
                return Err(format!("Could not create server TCP listening socket {name}:{port}: {error}"));
            }
        }
    }
    if listeners.is_empty() {
        return Err(format!("Failed listening on port {port} (tcp), aborting."));
    }
    Ok(listeners)
}

fn parse_address(name: &str) -> io::Result<IpAddr> {
    match name {
        "*" => Ok(IpAddr::from([0, 0, 0, 0])),
        "::*" => Ok(IpAddr::from([0u16; 8])),
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        name => name.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "not an IP address")),
    }
}

fn bind(address: SocketAddr, settings: &Settings) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(settings.int(P::TCP_BACKLOG) as i32)?;
    Ok(socket.into())
}

/// The sockets that the server listens at.
pub struct Listeners {
    shared: Arc<Shared>,
    /// Number of connections so far.
    accepted: Arc<AtomicUsize>,
    open: Mutex<Vec<Accepting>>,
}

/// A socket, and the thread that accepts from it.
struct Accepting {
    listener: Arc<TcpListener>,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Listeners {
    /// None yet.
    pub fn new(shared: Arc<Shared>) -> Listeners {
        Listeners { shared, accepted: Arc::default(), open: Mutex::default() }
    }

    /// Starts to accept from these, each on a thread of its own.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn accept(&self, listeners: Vec<TcpListener>) -> Result<(), String> {
        for listener in listeners {
            let (listener, ends) = (Arc::new(listener), Arc::new(AtomicBool::new(false)));
            let (shared, accepted) = (self.shared.clone(), self.accepted.clone());
            let run = (listener.clone(), ends.clone());
            let thread = std::thread::Builder::new()
                .name("accept".into())
                .stack_size(128 * 1024)
                .spawn(move || accept(&run.0, &run.1, &shared, &accepted))
                .map_err(|e| e.to_string())?;
            self.open.lock().push(Accepting { listener, ends, thread });
        }
        Ok(())
    }

    /// Closes all sockets; connections that were accepted stay.
    fn close(&self) {
        for Accepting { listener, ends, thread } in self.open.lock().drain(..) {
            ends.store(true, Ordering::Release);
            // Wakes the thread up.
            let _ = SockRef::from(&*listener).shutdown(Shutdown::Both);
            // Whether it ended well or not, it is gone, and its socket with it.
            let _ = thread.join();
        }
    }

    /// Listens where `next` says instead of where `old` says. Without a port or an address it listens nowhere.
    ///
    /// # Errors
    /// Why it cannot; it listens as before then.
    pub fn move_to(&self, old: &Settings, next: &Settings) -> Result<(), String> {
        // The new addresses may overlap with the old ones.
        self.close();
        let moved = open_some(next).and_then(|listeners| self.accept(listeners));
        if moved.is_err() {
            self.close();
            open_some(old).and_then(|listeners| self.accept(listeners))?;
        }
        moved
    }
}

fn open_some(settings: &Settings) -> Result<Vec<TcpListener>, String> {
    if settings.int(P::PORT) == 0 || settings.addresses().is_empty() {
        return Ok(Vec::new());
    }
    open(settings)
}

/// Accepts connections until `ends` is set and the socket shut down.
fn accept(listener: &TcpListener, ends: &AtomicBool, shared: &Shared, accepted: &AtomicUsize) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                prepare(&stream, &shared.host.settings());
                let shard = accepted.fetch_add(1, Ordering::Relaxed) % shared.shards();
                shared.control(shard, Control::Connection(stream));
            }
            Err(_) if ends.load(Ordering::Acquire) => return,
            Err(error) => {
                // Out of descriptors, most likely: others must close first.
                line(Level::Warning, &format!("Accepting a client connection: {error}"));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

fn prepare(stream: &std::net::TcpStream, settings: &Settings) {
    // A connection without these options still works.
    let _ = stream.set_nodelay(true);
    if stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()) {
        // Between two processes of one machine there is no bandwidth to probe: elaborate congestion control (BBR's
        // pacing above all) only costs. Reno is in every kernel and open to every user.
        let _ = SockRef::from(stream).set_tcp_congestion(b"reno");
    }
    let seconds = settings.int(P::TCP_KEEPALIVE);
    if seconds > 0 {
        let keepalive = TcpKeepalive::new()
            .with_time(Duration::from_secs(seconds as u64))
            .with_interval(Duration::from_secs((seconds as u64 / 3).max(1)))
            .with_retries(3);
        let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
    }
}
