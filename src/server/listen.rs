//! Sockets to listen at, and the threads that accept.
//!
//! Must stay true: connections are dealt out to the shards in turns, so they spread evenly whatever their addresses.
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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

/// Starts a thread that accepts from `listener` for as long as the process lives.
///
/// # Errors
/// When the thread cannot be started.
pub fn accept(listener: TcpListener, shared: Arc<Shared>, next: Arc<AtomicUsize>) -> io::Result<()> {
    std::thread::Builder::new().name("accept".into()).stack_size(128 * 1024).spawn(move || {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    prepare(&stream, &shared.host.settings());
                    let shard = next.fetch_add(1, Ordering::Relaxed) % shared.shards();
                    shared.control(shard, Control::Connection(stream));
                }
                Err(error) => {
                    // Out of descriptors, most likely: others must close first.
                    line(Level::Warning, &format!("Accepting a client connection: {error}"));
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    })?;
    Ok(())
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
