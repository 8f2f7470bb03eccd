//! Starts servers on free ports of 127.0.0.1, each in a directory of its own, and ends them on drop.
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::Client;

/// How long a start or an end may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// What both kinds of server print once they serve.
const READY: &str = "Ready to accept connections";

/// A running server.
pub struct Server {
    child: Child,
    /// Its port.
    pub port: u16,
    dir: PathBuf,
    log: Log,
}

type Log = Arc<Mutex<Vec<String>>>;

/// The server under test.
pub fn binary() -> PathBuf {
    std::env::var_os("PERIGEE_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_perigee")), PathBuf::from)
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port()
}

/// A new empty directory.
pub fn fresh_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("perigee-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&dir).expect("a directory for a server");
    dir
}

impl Server {
    /// Starts the server under test with a number of shards and further arguments.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(shards: usize, args: &[&str]) -> Server {
        let shards = shards.to_string();
        let mut all = vec!["--shards", &shards, "--enable-debug-command", "yes"];
        all.extend_from_slice(args);
        Server::of(&binary(), &all)
    }

    /// Starts the server under test with variables of the environment, and leaves it alone: it may not even listen yet.
    ///
    /// # Panics
    /// When there is no such program.
    pub fn launch(shards: usize, args: &[&str], variables: &[(&str, &str)]) -> Server {
        let shards = shards.to_string();
        let all = [&["--shards", &shards, "--enable-debug-command", "yes"], args].concat();
        Server::spawn(&binary(), free_port(), &all, variables).0
    }

    /// Starts any server that takes `--port` and `--dir`.
    ///
    /// # Panics
    /// When it does not start.
    pub fn of(program: &Path, args: &[&str]) -> Server {
        const TRIES: usize = 5;
        for _ in 0..TRIES {
            // Another process may take the port before the server does.
            match Server::try_on(program, free_port(), args) {
                Ok(server) => return server,
                Err(log) if log.iter().any(|l| l.contains("in use") || l.contains("Failed listening")) => {}
                Err(log) => panic!("{} did not start:\n{}", program.display(), log.join("\n")),
            }
        }
        panic!("no free port in {TRIES} tries");
    }

    fn spawn(
        program: &Path,
        port: u16,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> (Server, [std::thread::JoinHandle<()>; 2]) {
        let dir = fresh_dir();
        let mut command = Command::new(program);
        // A configuration file must stand first.
        let (file, args) = args.split_at(usize::from(args.first().is_some_and(|a| !a.starts_with('-'))));
        command.args(file).args(["--port", &port.to_string(), "--dir"]).arg(&dir).args(args);
        let mut child = command
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{} cannot be run: {e}", program.display()));
        let log = Log::default();
        let out = keep(child.stdout.take().unwrap(), &log);
        let err = keep(child.stderr.take().unwrap(), &log);
        (Server { child, port, dir, log }, [out, err])
    }

    fn try_on(program: &Path, port: u16, args: &[&str]) -> Result<Server, Vec<String>> {
        let (server, pipes) = Server::spawn(program, port, args, &[]);
        if server.wait_for_line(READY) {
            return Ok(server);
        }
        let log = server.log.clone();
        drop(server);
        pipes.into_iter().for_each(|pipe| drop(pipe.join()));
        let lines = log.lock().unwrap().clone();
        Err(lines)
    }

    /// Waits for a line in the log that contains `text`. `false`: it ended, or it took too long.
    pub fn wait_for_line(&self, text: &str) -> bool {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if self.log.lock().unwrap().iter().any(|line| line.contains(text)) {
                return true;
            }
            if !Path::new(&format!("/proc/{}/exe", self.child.id())).exists() {
                // The last lines may still be on their way.
                std::thread::sleep(Duration::from_millis(50));
                return self.log.lock().unwrap().iter().any(|line| line.contains(text));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Everything it printed so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// A new connection.
    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Resident memory in bytes.
    pub fn rss_bytes(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the server runs");
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Time on the processor of all its threads, in nanoseconds.
    ///
    /// # Panics
    /// When it does not run.
    pub fn cpu_ns(&self) -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("the server runs");
        let files =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok());
        files.filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok()).sum()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|s| s.success()), "kill works");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("the server is our child") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("the server does not end:\n{}", self.log());
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("the server is our child").is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
        if std::thread::panicking() {
            eprintln!("--- log of the server on port {}:\n{}", self.port, self.log());
        }
    }
}

fn keep(from: impl std::io::Read + Send + 'static, log: &Log) -> std::thread::JoinHandle<()> {
    let log = log.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            log.lock().unwrap().push(line);
        }
    })
}

/// Runs the server under test to its end, which must come by itself: exit code and everything it printed.
///
/// # Panics
/// When it goes on running.
pub fn run_to_end(args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    let child = command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the server can be run");
    let log = Log::default();
    let out = keep(child.stdout.take().unwrap(), &log);
    let err = keep(child.stderr.take().unwrap(), &log);
    let mut server = Server { child, port: 0, dir: PathBuf::from("/nonexistent"), log };
    let status = server.wait_for_end();
    let _ = (out.join(), err.join());
    (status.code(), server.log())
}
