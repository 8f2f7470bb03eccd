//! From settings to a running server.
use std::future::{Future, poll_fn};
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use crate::base::clock;
use crate::cmd::cx::Ending;
use crate::config::{P, SHUTDOWN_FORCE, SHUTDOWN_NOSAVE, SHUTDOWN_SAVE, Settings, VERSION, refused_yet};
use crate::conn::{memory, serve};
use crate::ds::raw::arena;
use crate::host::{Facts, Host};
use crate::persist::commands::{heed_trouble, plan};
use crate::persist::load::{self, Start};
use crate::persist::shutdown::shut_down;
use crate::persist::snapshot;
use crate::rt::disk::{self, File};
use crate::rt::log::{self, Level, line};
use crate::rt::{self, Driver, Sleeper};
use crate::shard::Shared;
use crate::shard::cell::Cell;
use crate::shard::doorbell::{Button, Doorbell};
use crate::shard::local::Local;
use crate::shard::mesh::RING_MESSAGES;
use crate::shard::msg::Control;
use crate::store::Store;

use super::listen::{self, Listeners};
use super::{replay, table};

/// Milliseconds between two rounds of chores.
const TICK_MS: u64 = 100;
/// How long the end of the server waits for replies to leave.
const DRAIN_MS: u64 = 500;
/// Freed slots taken back from other threads in one go.
const SLOTS_STEP: usize = 2_000;
/// The file in the data directory that the server holds a lock on.
const LOCK_FILE: &str = "perigee.lock";
/// Stack of a shard's thread.
const STACK_BYTES: usize = 2 << 20;

/// Runs a server until it is told to end.
///
/// # Errors
/// A sentence that says why it could not start.
pub fn run(mut settings: Settings, config_file: Option<PathBuf>) -> Result<(), String> {
    if let Some(refusal) = refused_yet(&settings) {
        return Err(refusal);
    }
    log::set_level(settings.choice(P::LOGLEVEL));
    let path = settings.path(P::LOGFILE).to_path_buf();
    if !path.as_os_str().is_empty() {
        log::open(&path).map_err(|e| format!("Can't open the log file {}: {e}", path.display()))?;
    }
    let dir = enter_dir(&mut settings)?;
    let driver = choose_driver(&settings)?;
    let shards = choose_shards(&settings);
    let sockets = listen::open(&settings)?;
    let port = sockets[0].local_addr().map_err(|e| e.to_string())?.port();
    settings.set_id(P::PORT, &[port.to_string().as_bytes()]).map_err(|e| e.to_string())?;
    let rows = table::assemble().rows().len();
    announce(&settings, shards, driver, &dir);

    let host = Arc::new(Host::new(Facts {
        settings,
        shards,
        commands: rows,
        config_file,
        io_driver: driver.name(),
    }));
    // Before any thread is bound to a core: helpers inherit what their maker may use.
    host.lazy_free.start();
    let _lock = lock_folder(&host.settings())?;
    let start = load::at_start(&host)?;
    let (shared, seats) = build(host)?;
    stop_on_signals(&shared)?;
    tell_trouble(&shared);
    let mut threads = Vec::new();
    let mut start = Some(start);
    for (id, (controls, pillow)) in seats.into_iter().enumerate() {
        let (shared, start) = (shared.clone(), start.take());
        let thread = std::thread::Builder::new().name(format!("shard-{id}")).stack_size(STACK_BYTES);
        let shard = move || run_shard(id, shared, controls, pillow, driver, start);
        threads.push(thread.spawn(shard).map_err(|e| format!("Can't start a shard's thread: {e}"))?);
    }
    let listeners = Listeners::new(shared.clone());
    listeners.accept(sockets)?;
    let move_to = move |old: &Settings, next: &Settings| listeners.move_to(old, next);
    // Nobody else sets it.
    let _ = shared.host.listen.set(Box::new(move_to));
    for thread in threads {
        if thread.join().is_err() {
            // A server without one of its shards would answer wrongly.
            std::process::abort();
        }
    }
    if shared.host.journal.is_on() {
        line(Level::Notice, "Calling fsync() on the AOF file.");
        shared.host.journal.finish();
    }
    line(Level::Warning, "Perigee is now ready to exit, bye bye...");
    Ok(())
}

/// Takes the data directory for this process, where it keeps data there.
fn lock_folder(settings: &Settings) -> Result<Option<File>, String> {
    if settings.save_rules().is_empty() && !settings.bool(P::APPENDONLY) {
        return Ok(None);
    }
    let dir = settings.path(P::DIR).display();
    let cannot = |error: std::io::Error| format!("Can't lock the data directory {dir}: {error}");
    let file = File::append(LOCK_FILE.as_ref()).map_err(cannot)?;
    match file.try_lock().map_err(cannot)? {
        true => Ok(Some(file)),
        false => {
            Err(format!("Another server uses the data directory {dir}: its lock, {LOCK_FILE}, is taken."))
        }
    }
}

fn enter_dir(settings: &mut Settings) -> Result<PathBuf, String> {
    let dir = settings.path(P::DIR).to_path_buf();
    std::env::set_current_dir(&dir).map_err(|e| format!("Can't chdir to '{}': {e}", dir.display()))?;
    let absolute =
        std::env::current_dir().map_err(|e| format!("Can't find out the working directory: {e}"))?;
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(absolute.as_os_str()).to_vec();
    settings.set_id(P::DIR, &[&bytes]).map_err(|e| e.to_string())?;
    Ok(absolute)
}

/// The driver asked for; `auto` takes io_uring where the kernel lets us have our kind of ring, else epoll.
fn choose_driver(settings: &Settings) -> Result<Driver, String> {
    let asked = settings.choice(P::IO_DRIVER);
    match (asked, rt::uring_usable()) {
        ("epoll", _) => Ok(Driver::Epoll),
        (_, Ok(())) => Ok(Driver::Uring),
        ("uring", Err(error)) => Err(format!("io-driver is uring, but the kernel refuses it: {error}")),
        (_, Err(error)) => {
            line(Level::Notice, &format!("io_uring is not available ({error}); using epoll"));
            Ok(Driver::Epoll)
        }
    }
}

/// The shards asked for, or one per core that this process may use (affinity and cgroup quota respected).
fn choose_shards(settings: &Settings) -> usize {
    match settings.int(P::SHARDS) {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n as usize,
    }
}

fn announce(settings: &Settings, shards: usize, driver: Driver, dir: &std::path::Path) {
    let pid = std::process::id();
    line(Level::Notice, &format!("Perigee {VERSION} (compatible with Redis 8.0), PID: {pid}"));
    let (databases, port) = (settings.int(P::DATABASES), settings.int(P::PORT));
    line(
        Level::Notice,
        &format!(
            "{shards} shard(s), {databases} databases, driver {}, port {port}, data directory {}",
            driver.name(),
            dir.display()
        ),
    );
    line(Level::Notice, "Server initialized");
}

pub(super) type SeatOfShard = (flume::Receiver<Control>, UnixStream);

pub(super) fn build(host: Arc<Host>) -> Result<(Arc<Shared>, Vec<SeatOfShard>), String> {
    let (mut buttons, mut pillows) = (Vec::new(), Vec::new());
    for _ in 0..host.shards() {
        let (button, pillow) = UnixStream::pair().map_err(|e| format!("Can't make a socket pair: {e}"))?;
        button.set_nonblocking(true).map_err(|e| e.to_string())?;
        buttons.push(Box::new(move || {
            // A full pipe means that the sleeper has bytes to wake up for.
            let _ = (&button).write(&[1]);
        }) as Button);
        pillows.push(pillow);
    }
    let (shared, controls) = share(host, buttons, RING_MESSAGES);
    Ok((shared, controls.into_iter().zip(pillows).collect()))
}

/// What the shards of a server share, and the other ends of their channels for rare messages. There is a shard for each
/// of `buttons`, which wake them.
pub(super) fn share(
    host: Arc<Host>,
    buttons: Vec<Button>,
    ring_messages: usize,
) -> (Arc<Shared>, Vec<flume::Receiver<Control>>) {
    let shards = host.shards();
    let (mut cells, mut bells, mut controls, mut receivers) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut unwritten = Vec::new();
    for (id, button) in buttons.into_iter().enumerate() {
        let bell = Arc::new(Doorbell::new(Some(button)));
        let ring = bell.clone();
        let mut store = Store::new(host.settings(), host.counters[id].clone());
        store.lazy_free = Some(host.lazy_free.clone());
        unwritten.push(store.log.unwritten.clone());
        cells.push(Cell::new(
            store,
            shards == 1,
            Box::new(move || {
                ring.ring();
            }),
        ));
        bells.push(bell);
        let (sender, receiver) = flume::unbounded();
        controls.push(sender);
        receivers.push(receiver);
    }
    let settings = host.settings();
    let in_place = AtomicBool::new(false);
    let shared = Shared { cells, unwritten, bells, controls, ring_messages, host, in_place };
    shared.set_in_place(&settings);
    (Arc::new(shared), receivers)
}

/// Has writes refused while the log cannot be written, or a snapshot has failed.
fn tell_trouble(shared: &Arc<Shared>) {
    let host = Arc::downgrade(&shared.host);
    shared.host.persistence.watcher.set(move || {
        if let Some(host) = host.upgrade() {
            heed_trouble(&host);
        }
    });
    let host = Arc::downgrade(&shared.host);
    shared.host.journal.on_trouble(Box::new(move |errno| {
        let Some(host) = host.upgrade() else { return };
        host.persistence.log_errno.store(errno, Ordering::Relaxed);
        heed_trouble(&host);
    }));
}

/// What the words of a setting about a signal ask for.
fn ending_by(words: i64) -> Ending {
    let has = |word| words & word != 0;
    let saves = match (has(SHUTDOWN_SAVE), has(SHUTDOWN_NOSAVE)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    Ending { saves, is_forced: has(SHUTDOWN_FORCE) }
}

fn stop_on_signals(shared: &Arc<Shared>) -> Result<(), String> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(|e| e.to_string())?;
    let shared = shared.clone();
    let thread = std::thread::Builder::new().name("signals".into()).stack_size(128 * 1024);
    let wait = move || {
        let mut signaled = false;
        for signal in signals.forever() {
            let (name, id) = match signal {
                SIGINT => ("SIGINT", P::SHUTDOWN_ON_SIGINT),
                _ => ("SIGTERM", P::SHUTDOWN_ON_SIGTERM),
            };
            if std::mem::replace(&mut signaled, true) && signal == SIGINT {
                line(Level::Warning, "You insist... exiting now.");
                // There may be a snapshot half written; if there is none, so be it.
                let _ = disk::remove(&plan(&shared.host.settings()).temporary);
                std::process::exit(1);
            }
            line(Level::Warning, &format!("Received {name} scheduling shutdown..."));
            let ending = ending_by(shared.host.settings().int(id));
            let end = move |local: &Rc<Local>| {
                let local = local.clone();
                rt::spawn(async move {
                    let _ = shut_down(&local, ending).await;
                });
            };
            shared.control(0, Control::Job(Box::new(end)));
        }
    };
    thread.spawn(wait).map_err(|e| e.to_string())?;
    Ok(())
}

fn run_shard(
    id: usize,
    shared: Arc<Shared>,
    controls: flume::Receiver<Control>,
    pillow: UnixStream,
    driver: Driver,
    start: Option<Start>,
) {
    let local = Rc::new(Local::new(id, shared, controls));
    let main = async {
        let pillow = match Sleeper::new(pillow) {
            Ok(pillow) => pillow,
            Err(error) => panic!("shard {id} cannot listen to its bell: {error}"),
        };
        rt::spawn(chores(local.clone()));
        if let Some(start) = start {
            rt::spawn(replay::attend(local.clone(), start));
        }
        pump(&local, pillow).await;
        drain(&local).await;
        hang_up(&local);
    };
    if let Err(error) = rt::run(driver, main) {
        line(Level::Warning, &format!("Shard {id} cannot run its driver: {error}"));
        std::process::exit(1);
    }
}

/// Moves messages whenever there are some, and returns when the server ends.
async fn pump(local: &Rc<Local>, pillow: Sleeper) {
    let mut sleep = pin!(pillow.rung());
    poll_fn(|cx| {
        local.set_pump(cx.waker());
        let mut stop = false;
        loop {
            local.pump(|control| match control {
                Control::Connection(stream) => welcome(local, stream),
                Control::Walk => rt::spawn(snapshot::walk(local.clone())),
                Control::Job(job) => job(local),
                Control::Stop => stop = true,
                Control::Ring(_) => unreachable!("the pump keeps these"),
            });
            if stop {
                return Poll::Ready(());
            }
            match sleep.as_mut().poll(cx) {
                Poll::Ready(pillow) => sleep.set(pillow.rung()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
}

/// Lets replies that are on their way leave, for a moment at most.
async fn drain(local: &Local) {
    for _ in 0..DRAIN_MS / 5 {
        if !local.is_writing() {
            return;
        }
        rt::sleep_ms(5).await;
    }
}

/// Ends this shard's connections. The kernel closes the sockets of a ring some time after the process has gone; clients
/// must not be able to send into them until then.
fn hang_up(local: &Local) {
    let clients = &local.shared.host.clients;
    for client in clients.all() {
        if client.shard.load(Ordering::Relaxed) == local.id as i32 {
            clients.kill(&client);
        }
    }
}

/// Takes a connection in, unless there are too many or it comes from outside in protected mode.
fn welcome(local: &Rc<Local>, stream: TcpStream) {
    let host = &local.shared.host;
    let settings = host.settings();
    let refusal = if host.clients.len() as i64 >= settings.int(P::MAXCLIENTS) {
        Some("-ERR max number of clients reached\r\n")
    } else if settings.bool(P::PROTECTED_MODE) && stream.peer_addr().is_ok_and(|a| !a.ip().is_loopback()) {
        Some(
            "-DENIED Perigee runs in protected mode: no password is set, so only clients on this machine may \
             connect. Set protected-mode to no (CONFIG SET protected-mode no, or in the configuration file) if \
             the network in front of it is trusted.\r\n",
        )
    } else {
        None
    };
    if let Some(text) = refusal {
        local.counters.refused_connections.add(1);
        // Best effort: the client learns why, or sees the connection close.
        let _ = (&stream).write(text.as_bytes());
        return;
    }
    rt::spawn(serve::serve(stream, local.clone()));
}

/// Closes this shard's clients that sent nothing for `timeout` seconds (0: never).
fn close_idle(local: &Local) {
    let clients = &local.shared.host.clients;
    let seconds = local.shared.host.settings().int(P::TIMEOUT);
    if seconds <= 0 {
        return;
    }
    let oldest_ms = clock::wall_ms().saturating_sub(seconds as u64 * 1000);
    for client in clients.all() {
        let own = client.shard.load(Ordering::Relaxed) == local.id as i32;
        // Subscribers may only listen.
        if own && !client.is_subscriber() && client.last_ms.load(Ordering::Relaxed) < oldest_ms {
            clients.kill(&client);
        }
    }
}

/// What a shard does from time to time.
async fn chores(local: Rc<Local>) {
    let mut ticks = 0u64;
    while !local.shared.host.stopping.load(Ordering::Relaxed) {
        rt::sleep_ms(TICK_MS).await;
        local.tick();
        if local.id == 0 {
            memory::evict(&local);
        }
        if local.id == 0 && ticks.is_multiple_of(1000 / TICK_MS) {
            local.shared.host.sample();
        }
        if ticks.is_multiple_of(1000 / TICK_MS) {
            close_idle(&local);
        }
        while arena::collect(SLOTS_STEP) {
            // Others first.
            rt::sleep_ms(1).await;
        }
        ticks += 1;
        while tidy_step(&local) {
            // Others first.
            rt::sleep_ms(1).await;
        }
    }
}

/// Deletes some of what has expired, and takes out listeners that are gone. `true`: there is more to do.
pub(super) fn tidy_step(local: &Local) -> bool {
    let Some(mut store) = local.enter() else { return false };
    let start = clock::instant();
    let door = local.door(store.now);
    let is_paused = local.shared.host.is_paused(store.now.ms);
    let more = (!is_paused && store.expire_step()) | door.limit_tracked(&mut store);
    store.sweep_listeners();
    door.spread_one(&mut store);
    local.write_log_of(&mut store);
    drop(store);
    local.shared.host.note_latency("expire-cycle", start.elapsed().as_millis() as u64);
    more
}
