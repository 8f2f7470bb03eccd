//! A blocking client with a deadline for everything, so that a server that hangs fails a test instead of hanging it.
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use super::{Value, command, resp, show, words};

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
pub struct Client {
    stream: TcpStream,
    buf: Vec<u8>,
    at: usize,
}

impl Client {
    /// Connects to a local port.
    ///
    /// # Panics
    /// When nobody listens.
    pub fn connect(port: u16) -> Client {
        Client::try_connect(port).expect("the server accepts connections")
    }

    /// Connects to a local port.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn try_connect(port: u16) -> io::Result<Client> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, buf: Vec::new(), at: 0 })
    }

    /// Sends bytes.
    ///
    /// # Panics
    /// When they cannot be sent.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the server takes bytes");
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// When they cannot be sent.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends a command given as words.
    pub fn send_words<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.send(command(words));
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends no more.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    fn fill(&mut self) -> io::Result<usize> {
        if self.at > 0 && self.at >= self.buf.len() / 2 {
            self.buf.drain(..self.at);
            self.at = 0;
        }
        let mut chunk = [0; 64 * 1024];
        let n = loop {
            match self.stream.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.buf.extend_from_slice(&chunk[..n]);
        Ok(n)
    }

    /// The next reply with its exact bytes; `None` when the server closed.
    ///
    /// # Errors
    /// When none comes in time, or the connection was reset.
    pub fn try_read(&mut self) -> io::Result<Option<(Value, Vec<u8>)>> {
        loop {
            // Large bulks are not scanned again with every piece.
            if let Some((value, len)) = resp::read(&self.buf[self.at..]) {
                let bytes = self.buf[self.at..self.at + len].to_vec();
                self.at += len;
                return Ok(Some((value, bytes)));
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    /// The next reply.
    ///
    /// # Panics
    /// When none comes in time.
    pub fn read(&mut self) -> Value {
        self.read_both().0
    }

    /// The exact bytes of the next reply.
    pub fn read_bytes(&mut self) -> Vec<u8> {
        self.read_both().1
    }

    fn read_both(&mut self) -> (Value, Vec<u8>) {
        match self.try_read() {
            Ok(Some(both)) => both,
            Ok(None) => panic!("the server closed the connection instead of a reply"),
            Err(error) => panic!("no reply: {error}; so far: {}", show(&self.buf[self.at..])),
        }
    }

    /// Whatever comes next, if anything comes at once; for clients that do not care.
    ///
    /// # Errors
    /// When nothing comes.
    pub fn try_read_some(&mut self) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(Duration::from_millis(1)))?;
        self.fill()
    }

    /// Exactly `n` bytes, whatever they mean.
    ///
    /// # Panics
    /// When they do not come in time.
    pub fn read_exact(&mut self, n: usize) -> Vec<u8> {
        while self.buf.len() - self.at < n {
            let got = self.fill().unwrap_or_else(|e| {
                panic!("{n} bytes were expected: {e}; so far: {}", show(&self.buf[self.at..]))
            });
            assert!(got > 0, "closed before {n} bytes; so far: {}", show(&self.buf[self.at..]));
        }
        let bytes = self.buf[self.at..self.at + n].to_vec();
        self.at += n;
        bytes
    }

    /// Everything up to the end of the connection.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        loop {
            match self.fill() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) => panic!("no end: {error}; so far: {}", show(&self.buf[self.at..])),
            }
        }
        let bytes = self.buf[self.at..].to_vec();
        self.at = self.buf.len();
        bytes
    }

    /// Runs a command given as a line (see [`words`]).
    pub fn run(&mut self, line: &str) -> Value {
        self.run_words(&words(line))
    }

    /// Runs a command given as words.
    pub fn run_words<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Value {
        self.send_words(words);
        self.read()
    }

    /// Runs a command given as a line; its reply's exact bytes.
    pub fn bytes(&mut self, line: &str) -> Vec<u8> {
        self.send_words(&words(line));
        self.read_bytes()
    }

    /// Runs a command and compares the exact bytes of its reply.
    ///
    /// # Panics
    /// When they differ.
    #[track_caller]
    pub fn check(&mut self, line: &str, want: impl AsRef<[u8]>) {
        let got = self.bytes(line);
        let want = want.as_ref();
        assert!(got == want, "{line}\n   got: {}\n  want: {}", show(&got), show(want));
    }

    /// Checks that no byte waits.
    ///
    /// # Panics
    /// When one comes within a moment.
    pub fn expect_silence(&mut self) {
        assert!(self.at == self.buf.len(), "bytes left over: {}", show(&self.buf[self.at..]));
        self.stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        let got = self.fill();
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(got.is_err(), "silence was expected: {}", show(&self.buf[self.at..]));
    }
}
