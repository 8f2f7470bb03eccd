//! A server of one shard without threads and sockets: bytes in, replies out. For benchmarks and for counting
//! instructions; everything from the parser to the reply is the code that serves connections.
use std::rc::Rc;
use std::sync::Arc;

use super::{boot, table};
use crate::cmd::cx::Client;
use crate::config::Settings;
use crate::conn::session::{Session, Turn};
use crate::host::{ClientInfo, Facts, Host};
use crate::shard::local::Local;

/// One shard and one connection to it.
#[doc(hidden)]
pub struct InProcess {
    local: Rc<Local>,
    session: Session,
    /// Idle ones.
    others: Vec<Session>,
}

impl InProcess {
    /// An empty server with the settings' defaults.
    ///
    /// # Errors
    /// When the process may have no more file descriptors: a shard has a doorbell even if nobody rings it.
    pub fn new() -> Result<InProcess, String> {
        let commands = table::assemble().rows().len();
        let host = Host::new(Facts {
            settings: Settings::default(),
            shards: 1,
            commands,
            config_file: None,
            io_driver: "none",
        });
        let (shared, mut seats) = boot::build(Arc::new(host))?;
        let (controls, _) = seats.pop().expect("there is a seat for every shard");
        let local = Rc::new(Local::new(0, shared, controls));
        let session = connection(&local, 1);
        Ok(InProcess { local, session, others: Vec::new() })
    }

    /// Makes another connection, runs `request` there and leaves it idle. Its replies are lost.
    ///
    /// # Panics
    /// As [`InProcess::exchange`].
    pub fn beside(&mut self, request: &[u8]) {
        let mut other = connection(&self.local, self.others.len() as u64 + 2);
        exchange(&mut other, &self.local, request);
        self.others.push(other);
    }

    /// Takes `request` in as one read from a socket would, runs it, and hands the replies out. What `request` cuts
    /// off waits for the next call. The replies stay until that call.
    ///
    /// # Panics
    /// When a command ends the connection or the server, or waits: nothing here could go on.
    pub fn exchange(&mut self, request: &[u8]) -> &[u8] {
        exchange(&mut self.session, &self.local, request);
        &self.session.out.buf
    }
}

fn connection(local: &Rc<Local>, id: u64) -> Session {
    let info = Arc::new(ClientInfo::new(id, "127.0.0.1:0".into(), "127.0.0.1:0".into(), -1, 0));
    local.shared.host.clients.add(info.clone());
    Session::new(Client::new(info), local)
}

fn exchange(session: &mut Session, local: &Local, request: &[u8]) {
    session.out.buf.clear();
    let mut input = session.lend_input();
    input.extend_from_slice(request);
    session.take_input(input, request.len());
    let turn = session.run(local);
    assert_eq!(turn, Turn::Read, "the request must leave the connection open");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_what_a_connection_serves() {
        let mut server = InProcess::new().unwrap();
        assert_eq!(server.exchange(b"SET k 1\r\nINCR k\r\nINCR"), b"+OK\r\n:2\r\n");
        assert_eq!(server.exchange(b" k\r\nGET nothing\r\n"), b":3\r\n$-1\r\n");
        assert_eq!(server.exchange(b"*1\r\n$6\r\nDBSIZE\r\n"), b":1\r\n");
    }
}
