//! The loop between a socket and its session.
//!
//! Must stay true: reads and writes of a connection go on at the same time, so a client that sends without reading
//! is served until its output passes its limit; a read that was begun is kept until it completes or the connection
//! ends.
use std::future::{Future, poll_fn};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use super::limits::Overrun;
use super::memory;
use super::session::{Session, Turn};
use crate::base::clock;
use crate::cmd::cx::Client;
use crate::cmd::spec::Done;
use crate::host::ClientInfo;
use crate::persist::aof::commands::ask_reload;
use crate::persist::shutdown::shut_down;
use crate::rt;
use crate::shard::local::{Local, Mailbox, Writing};
use crate::wire::Error;

/// An output buffer larger than this is not kept once it is written.
const OUTPUT_BYTES_KEEP: usize = 64 * 1024;

/// Serves one connection to its end.
pub async fn serve(stream: TcpStream, local: Rc<Local>) {
    let is_local = stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback());
    let address = |a: std::io::Result<std::net::SocketAddr>| a.map(|a| a.to_string()).unwrap_or_default();
    let (addr, laddr) = (address(stream.peer_addr()), address(stream.local_addr()));
    let host = &local.shared.host;
    let fd = stream.as_raw_fd();
    let Ok((reader, writer)) = rt::split(stream) else { return };
    let info = Arc::new(ClientInfo::new(host.clients.next_id(), addr, laddr, fd, local.id));
    host.clients.add(info.clone());
    local.counters.connections.add(1);
    local.counters.clients.add(1);

    let mut client = Client::new(info.clone());
    client.caller.local = is_local;
    let mut session = Session::new(client, &local);
    exchange(&mut session, &local, reader, writer, &info).await;

    // From here on nobody may use the descriptor: it is closed, and its number may be used again.
    *info.fd.lock() = -1;
    session.end(&local);
    host.clients.remove(info.id);
    local.counters.clients.add(1u64.wrapping_neg());
}

enum Event {
    Read(rt::ReadHalf, std::io::Result<usize>, Vec<u8>),
    Written(rt::WriteHalf, std::io::Result<usize>, Vec<u8>),
    Mail,
}

type ReadDone = (rt::ReadHalf, std::io::Result<usize>, Vec<u8>);
type Written = (rt::WriteHalf, std::io::Result<usize>, Vec<u8>);

/// Writes replies; the shard knows of it for as long as it lasts.
async fn write(writer: rt::WriteHalf, bytes: Vec<u8>, _under_way: Writing<'_>) -> Written {
    writer.write_all(bytes).await
}

/// Waits for the write or the read under way, for the mailbox, or for the time to be up.
async fn next_event(
    mut reading: Pin<&mut Option<impl Future<Output = ReadDone>>>,
    mut writing: Pin<&mut Option<impl Future<Output = Written>>>,
    mailbox: &Mailbox,
    mut alarm: Pin<&mut Option<impl Future<Output = ()>>>,
) -> Event {
    poll_fn(|cx| {
        if let Some(write) = writing.as_mut().as_pin_mut()
            && let Poll::Ready((half, result, buf)) = write.poll(cx)
        {
            return Poll::Ready(Event::Written(half, result, buf));
        }
        if let Some(read) = reading.as_mut().as_pin_mut()
            && let Poll::Ready((half, result, buf)) = read.poll(cx)
        {
            return Poll::Ready(Event::Read(half, result, buf));
        }
        if let Some(ring) = alarm.as_mut().as_pin_mut()
            && ring.poll(cx).is_ready()
        {
            return Poll::Ready(Event::Mail);
        }
        // Letters may come to anybody: others may redirect theirs.
        if mailbox.poll(cx.waker()) { Poll::Ready(Event::Mail) } else { Poll::Pending }
    })
    .await
}

/// Hands what the socket takes at once to the kernel: for the usual small replies that is all, and it is cheaper than
/// a write that has to be waited for. `false`: the connection is broken.
fn write_at_once(fd: i32, session: &mut Session, local: &Local, info: &ClientInfo) -> bool {
    let bytes = match rt::sys::send_now(fd, &session.out.buf) {
        Ok(bytes) => bytes,
        Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
    };
    count_written(local, info, bytes);
    if bytes == session.out.buf.len() {
        session.out.buf = emptied(std::mem::take(&mut session.out.buf));
    } else {
        session.out.buf.drain(..bytes);
    }
    info.output_bytes.store(session.out.buf.len() as u64, Ordering::Relaxed);
    true
}

/// Sees to it that the log has what replies tell of. `false`: not yet; the connection is rung when to try again.
#[inline]
async fn write_log(session: &Session, local: &Local) -> bool {
    if !local.has_unwritten() {
        return true;
    }
    // Those that are ready run first: one write is for all of them.
    rt::yield_now().await;
    local.write_log() || session.ring_when_free(local)
}

/// A written buffer for use again, unless it is too large to be kept.
fn emptied(mut buf: Vec<u8>) -> Vec<u8> {
    buf.clear();
    if buf.capacity() > OUTPUT_BYTES_KEEP { Vec::new() } else { buf }
}

fn count_written(local: &Local, info: &ClientInfo, bytes: usize) {
    local.counters.writes.add(1);
    local.counters.net_out.add(bytes as u64);
    info.net_out.add(bytes as u64);
}

/// Takes bytes that were read and runs what they ask for.
fn read(session: &mut Session, local: &Local, buf: Vec<u8>, bytes: usize) -> Turn {
    session.take_input(buf, bytes);
    if bytes == 0 {
        // The client will send no more; what it is owed is still written.
        return session.hang_up(local);
    }
    local.counters.reads.add(1);
    local.counters.net_in.add(bytes as u64);
    session.run(local)
}

/// What ends a wait that has an end.
fn alarm_for(turn: &Turn) -> Option<impl Future<Output = ()> + use<>> {
    match turn {
        Turn::Blocked(Some(until_ms)) => Some(rt::sleep_ms(until_ms.saturating_sub(clock::wall_ms()))),
        _ => None,
    }
}

/// Does what a command wished for the whole server. `None`: the server ends.
async fn grant(turn: &Turn, local: &Local) -> Option<Done> {
    match turn {
        Turn::ReloadLog => Some(ask_reload(local).await),
        Turn::Shutdown(ending) if shut_down(local, *ending).await => None,
        _ => Some(Err(Error::err("Errors trying to SHUTDOWN. Check logs."))),
    }
}

async fn exchange(
    session: &mut Session,
    local: &Local,
    reader: rt::ReadHalf,
    writer: rt::WriteHalf,
    info: &ClientInfo,
) {
    let fd = *info.fd.lock(); // Ours until this returns.
    let mut reading = pin!(Some(reader.read(session.lend_input())));
    let (mut writing, mut alarm) = (pin!(None), pin!(None));
    let (mut idle_reader, mut idle_writer) = (None, Some(writer));
    let (mut spare, mut turn) = (Vec::new(), Turn::Read);
    // Bytes of the write under way, and how long too much has been waiting.
    let (mut writing_bytes, mut overrun) = (0, Overrun::default());
    loop {
        session.hear();
        if overrun.must_close(session, writing_bytes, local, info) {
            return;
        }
        let is_logged = !session.may_write() || write_log(session, local).await;
        let may_write = is_logged && idle_writer.is_some() && session.may_write();
        if may_write && !write_at_once(fd, session, local, info) {
            return;
        }
        if let Some(writer) = idle_writer.take_if(|_| may_write && session.may_write()) {
            let bytes = std::mem::replace(&mut session.out.buf, std::mem::take(&mut spare));
            writing_bytes = bytes.len();
            writing.set(Some(write(writer, bytes, local.writing())));
        }
        match turn {
            Turn::Close if is_logged && idle_writer.is_some() => return,
            Turn::Shutdown(_) | Turn::ReloadLog => {
                let Some(outcome) = grant(&turn, local).await else { return };
                turn = session.goes_on(local, outcome);
                continue;
            }
            _ => {}
        }
        if matches!(turn, Turn::Read | Turn::Blocked(_))
            && let Some(reader) = idle_reader.take()
        {
            reading.set(Some(rt::ReadHalf::read(reader, session.lend_input())));
        }
        // Now that the buffers are as large as they stay.
        memory::account(session, writing_bytes, local, info);
        alarm.set(alarm_for(&turn));
        let event = next_event(reading.as_mut(), writing.as_mut(), session.mailbox(), alarm.as_mut()).await;
        match event {
            Event::Written(half, result, buf) => {
                writing.set(None);
                let Ok(bytes) = result else { return };
                count_written(local, info, bytes);
                writing_bytes = 0;
                idle_writer = Some(half);
                spare = emptied(buf);
            }
            Event::Read(half, result, buf) => {
                reading.set(None);
                let bytes = result.unwrap_or(0);
                idle_reader = (bytes > 0).then_some(half);
                turn = read(session, local, buf, bytes);
            }
            Event::Mail if turn == Turn::Read && session.only_hears() => {}
            Event::Mail => turn = session.run(local),
        }
    }
}
