//! The data plane on monoio.
use std::future::{Future, poll_fn};
use std::io;
use std::net::TcpStream as StdTcpStream;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::task::Poll;
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

/// Lets everything else that is ready run first.
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
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
