//! What is left when a server or its disk fails: kill -9 at random moments, and a disk whose n-th call fails, for every n.
//!
//! Clients keep a model of their keys (`model`, `owner`). After each restart, under another number of shards, what was
//! acknowledged must be there. `PERIGEE_SEED` repeats the choices of a run (not the moments of threads),
//! `PERIGEE_CRASH_ROUNDS` makes it longer.
#[path = "../support/mod.rs"]
mod support;

mod disk;
mod kills;
mod model;
mod owner;

use std::path::{Path, PathBuf};

use support::Client;
use support::server::fresh_dir;

/// Kills in each cell of the matrix.
const ROUNDS: usize = 15;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// How many times each server is killed.
fn rounds() -> usize {
    setting("PERIGEE_CRASH_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize)
}

/// Where the choices of a test come from.
fn seed() -> u64 {
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    setting("PERIGEE_SEED").unwrap_or_else(|| now().map_or(1, |now| now.as_nanos() as u64 % 1_000_000))
}

/// A data directory that goes away with this value.
struct Data(PathBuf);

impl Drop for Data {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        } else {
            eprintln!("the files are left in {}", self.0.display());
        }
    }
}

impl Data {
    fn new() -> Data {
        Data(fresh_dir())
    }

    fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["--dir", self.0.to_str().unwrap()], more].concat()
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// Names of the files in a folder.
    fn files(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join(folder)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// A field of INFO.
fn info(client: &mut Client, field: &str) -> String {
    let info = client.run("INFO persistence").string();
    let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("no {field} in {info}")).trim().to_string()
}

fn digest(client: &mut Client) -> String {
    client.run("DEBUG DIGEST").string()
}
