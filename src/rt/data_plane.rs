//! The data plane on monoio.
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::net::TcpStream as StdTcpStream;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use monoio::buf::SliceMut;
use monoio::io::{AsyncReadRent, AsyncWriteRentExt, OwnedReadHalf, OwnedWriteHalf, Splitable};
use monoio::net::{TcpStream, UnixStream};
use monoio::{IoUringDriver, LegacyDriver, RuntimeBuilder};

/// Submission queue entries of a ring.
const RING_ENTRIES: u32 = 1024;

/// How a shard waits for its sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Completions.
    Uring,
    /// Readiness.
    Epoll,
}

impl Driver {
    /// As INFO prints it.
    pub fn name(self) -> &'static str {
        match self {
            Driver::Uring => "io_uring",
            Driver::Epoll => "epoll",
        }
    }
}

/// A ring that only its own thread enters and that does its work there: a plain one costs more than epoll.
fn ring_builder() -> io_uring::Builder {
    let mut builder = io_uring::IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun();
    builder
}

/// Whether a ring of our kind can be made here.
///
/// # Errors
/// What the kernel answered: containers often forbid io_uring, old kernels lack the flags.
pub fn uring_usable() -> io::Result<()> {
    ring_builder().build(8).map(|_ring| ())
}

/// Runs `main` and everything it spawns on this thread.
///
/// # Errors
/// When the driver cannot be made.
pub fn run<F: Future<Output = ()>>(driver: Driver, main: F) -> io::Result<()> {
    match driver {
        Driver::Uring => RuntimeBuilder::<IoUringDriver>::new()
            .uring_builder(ring_builder())
            .with_entries(RING_ENTRIES)
            .enable_timer()
            .build()?
            .block_on(main),
        Driver::Epoll => RuntimeBuilder::<LegacyDriver>::new().enable_timer().build()?.block_on(main),
    }
    Ok(())
}

/// Runs `task` on this thread, beside the others.
pub fn spawn(task: impl Future<Output = ()> + 'static) {
    monoio::spawn(task);
}

/// Waits.
pub async fn sleep_ms(ms: u64) {
    monoio::time::sleep(Duration::from_millis(ms)).await;
}

/// Both ends of a pipe to oneself, and the byte that goes through.
struct Turnstile {
    push: StdUnixStream,
    pass: UnixStream,
    byte: Vec<u8>,
}

thread_local! {
    static TURNSTILE: RefCell<Option<Turnstile>> = const { RefCell::new(None) };
}

impl Turnstile {
    fn make() -> io::Result<Turnstile> {
        let (push, pass) = StdUnixStream::pair()?;
        pass.set_nonblocking(true)?;
        Ok(Turnstile { push, pass: UnixStream::from_std(pass)?, byte: vec![0] })
    }

    async fn turn(mut self) -> io::Result<Turnstile> {
        self.push.write_all(&[0])?;
        let (passed, byte) = self.pass.read(std::mem::take(&mut self.byte)).await;
        self.byte = byte;
        passed.map(|_| self)
    }
}

/// Waits until the driver has looked at all sockets: for work that goes on and on.
///
/// While any task is ready the driver hands requests to the kernel but takes no completions in, so a task that only
/// stands back ([`yield_now`]) would keep everybody from being heard.
pub async fn next_turn() {
    let turnstile = TURNSTILE.take().map_or_else(Turnstile::make, Ok);
    let passed = match turnstile {
        Ok(turnstile) => turnstile.turn().await,
        Err(error) => Err(error),
    };
    match passed {
        Ok(turnstile) => TURNSTILE.set(Some(turnstile)),
        // No descriptor is free.
        Err(_) => sleep_ms(1).await,
    }
}

/// Milliseconds between two looks at what another thread sends.
const LOOK_MS: u64 = 1;

/// Waits for what another thread sends, which cannot wake a task of this one. `None`: it has ended without a word.
pub async fn received<T>(receiver: &flume::Receiver<T>) -> Option<T> {
    loop {
        match receiver.try_recv() {
            Ok(sent) => return Some(sent),
            Err(flume::TryRecvError::Disconnected) => return None,
            Err(flume::TryRecvError::Empty) => sleep_ms(LOOK_MS).await,
        }
    }
}

/// Who stands back for those that are ready, and the task that calls them again.
#[derive(Default)]
struct StoodBack {
    wakers: Vec<Waker>,
    usher: Option<Waker>,
}

thread_local! {
    static STOOD_BACK: RefCell<StoodBack> = RefCell::default();
}

/// Lets everything else that is ready run first.
///
/// A task that wakes itself is run next, before the others; one that another task wakes goes to the end of the queue.
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        let is_first = STOOD_BACK.with_borrow_mut(|back| {
            back.wakers.push(cx.waker().clone());
            back.usher.as_ref().map(Waker::wake_by_ref).is_none()
        });
        if is_first {
            spawn(poll_fn(usher));
        }
        Poll::Pending
    })
    .await;
}

/// Calls those that stood back. Never ends: there is one for each thread that needs it.
fn usher(cx: &mut Context<'_>) -> Poll<()> {
    let mut wakers = STOOD_BACK.with_borrow_mut(|back| {
        back.usher.get_or_insert_with(|| cx.waker().clone());
        std::mem::take(&mut back.wakers)
    });
    wakers.drain(..).for_each(Waker::wake);
    // The room is used again.
    STOOD_BACK.with_borrow_mut(|back| {
        if back.wakers.is_empty() {
            back.wakers = wakers;
        }
    });
    Poll::Pending
}

/// The reading half of a connection.
pub struct ReadHalf(OwnedReadHalf<TcpStream>);

/// The writing half of a connection.
pub struct WriteHalf(OwnedWriteHalf<TcpStream>);

/// Takes a connection over.
///
/// # Errors
/// When the socket cannot be registered.
pub fn split(stream: StdTcpStream) -> io::Result<(ReadHalf, WriteHalf)> {
    stream.set_nonblocking(true)?;
    let (read, write) = TcpStream::from_std(stream)?.into_split();
    Ok((ReadHalf(read), WriteHalf(write)))
}

impl ReadHalf {
    /// Reads once into the spare capacity of `buf`; 0: the end.
    pub async fn read(mut self, buf: Vec<u8>) -> (ReadHalf, io::Result<usize>, Vec<u8>) {
        let (len, capacity) = (buf.len(), buf.capacity());
        let (result, slice) = self.0.read(SliceMut::new(buf, len, capacity)).await;
        (self, result, slice.into_inner())
    }
}

impl WriteHalf {
    /// Writes all of `buf`.
    pub async fn write_all(mut self, buf: Vec<u8>) -> (WriteHalf, io::Result<usize>, Vec<u8>) {
        let (result, buf) = self.0.write_all(buf).await;
        (self, result, buf)
    }
}

/// The pillow of a shard: ends its sleep when another thread writes a byte.
pub struct Sleeper(UnixStream);

impl Sleeper {
    /// Listens at the other end of a doorbell's button.
    ///
    /// # Errors
    /// When the socket cannot be registered.
    pub fn new(stream: StdUnixStream) -> io::Result<Sleeper> {
        stream.set_nonblocking(true)?;
        Ok(Sleeper(UnixStream::from_std(stream)?))
    }

    /// Waits for a ring; takes up to 64 at once.
    pub async fn rung(mut self) -> Sleeper {
        let _ = self.0.read(vec![0u8; 64]).await;
        self
    }
}
