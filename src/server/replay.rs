//! Loads the append-only log at the start: its commands run through a session like those of a client, whose replies
//! nobody reads. So routing, transactions and several shards are what they always are.
//!
//! Must stay true: a file that is damaged in the middle, or is no log, refuses the start; only the end of the last file
//! that has anything may be cut off, and only if the settings allow it.
use super::boot;
use std::io::{Chain, Cursor, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::clock;
use crate::cmd::cx::Client;
use crate::cmd::table::table;
use crate::config::P;
use crate::conn::session::{Session, Turn};
use crate::host::{ClientInfo, Counters, error_text};
use crate::persist::aof::Aof;
use crate::persist::aof::files::{Place, Refused, shown};
use crate::persist::aof::manifest::Manifest;
use crate::persist::aof::reader::{Fault, Reader};
use crate::persist::insert::How;
use crate::persist::load::{self, Dealer};
use crate::rt;
use crate::rt::disk::File;
use crate::rt::log::{Level, line};
use crate::shard::local::Local;

/// First bytes of a snapshot.
const MAGICS: [&[u8]; 2] = [b"REDIS", b"VALKEY"];
/// How long a script that takes long is left alone, milliseconds.
const PAUSE_MS: u64 = 1;

/// What was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Loaded {
    /// Bytes of all files.
    bytes: u64,
    /// Bytes of the base.
    base_bytes: u64,
}

/// Milliseconds between two looks at what is due.
const TICK_MS: u64 = 100;

/// Loads the log if it is on, then sees to its files until the server ends. Runs on the first shard.
pub async fn attend(local: Rc<Local>) {
    let Ok(aof) = begin(&local).await else { std::process::exit(1) };
    let host = &local.shared.host;
    if host.journal.is_on() {
        load::end(host);
        boot::tell_ready();
    }
    while !host.stopping.load(Ordering::Relaxed) {
        rt::sleep_ms(TICK_MS).await;
        aof.tend(&local).await;
    }
}

async fn begin(local: &Rc<Local>) -> Result<Rc<Aof>, Refused> {
    let settings = local.shared.host.settings();
    let place = Place::of(&settings);
    if !settings.bool(P::APPENDONLY) {
        return Ok(Aof::new(place.clone(), place.read_manifest()?));
    }
    let manifest = place.prepare()?;
    let loaded = load(local, &place, &manifest).await?;
    let aof = Aof::new(place, manifest);
    aof.start(local, loaded.bytes, loaded.base_bytes).await?;
    Ok(aof)
}

fn warn(text: &str) {
    line(Level::Warning, text);
}

/// A client that was never there.
struct Player {
    session: Session,
    local: Rc<Local>,
}

impl Player {
    fn new(local: &Rc<Local>) -> Player {
        let id = local.shared.host.clients.next_id();
        let info = ClientInfo::new(id, String::new(), String::new(), -1, local.id);
        let mut client = Client::new(Arc::new(info));
        client.caller.local = true;
        let mut session = Session::new(client, local);
        session.replays = true;
        Player { session, local: local.clone() }
    }

    /// Runs whole commands. `false`: one of them did what no logged command does: it ended the connection or the server,
    /// or waits for others.
    async fn play(&mut self, commands: &[u8]) -> bool {
        let session = &mut self.session;
        let mut input = session.lend_input();
        input.extend_from_slice(commands);
        session.take_input(input, commands.len());
        let mut turn = session.run(&self.local);
        loop {
            if session.may_write() {
                session.out.buf.clear();
            }
            match turn {
                Turn::Read => return true,
                Turn::Wait => session.mailbox().arrival().await,
                Turn::Blocked(_) if session.is_set_aside() => rt::sleep_ms(PAUSE_MS).await,
                Turn::Blocked(_) | Turn::Close | Turn::Shutdown => return false,
            }
            turn = session.run(&self.local);
        }
    }

    fn end(self) {
        self.session.end(&self.local);
    }
}

/// Loads all files of the log.
///
/// # Errors
/// When a file cannot be read, or holds something else than a log; the lines that say so were written.
async fn load(local: &Rc<Local>, place: &Place, manifest: &Manifest) -> Result<Loaded, Refused> {
    let sizes = place.sizes(manifest)?;
    let last = sizes.iter().rposition(|bytes| *bytes > 0);
    let host = &local.shared.host;
    load::begin(host, sizes.iter().sum());
    let errors_before = error_replies(local);
    for (index, (entry, bytes)) in manifest.to_load().zip(&sizes).enumerate() {
        if *bytes == 0 {
            continue;
        }
        let start = clock::instant();
        let before = sizes[..index].iter().sum();
        load_file(local, place, &entry.name, (last == Some(index), before)).await?;
        let kind = if index == 0 && manifest.base.is_some() { "base" } else { "incr" };
        let (name, seconds) = (shown(&entry.name), start.elapsed().as_secs_f64());
        line(Level::Notice, &format!("DB loaded from {kind} file {name}: {seconds:.3} seconds"));
    }
    let errors = error_replies(local) - errors_before;
    if errors > 0 {
        warn(&format!("== CRITICAL == {errors} commands of the append only files were answered with errors"));
    }
    for counters in &host.counters {
        counters.reset();
    }
    let base_bytes = if manifest.base.is_some() { sizes[0] } else { 0 };
    // The last file may have been cut.
    Ok(Loaded { bytes: place.sizes(manifest)?.iter().sum(), base_bytes })
}

fn error_replies(local: &Local) -> u64 {
    // Clients that do not wait for the end of loading are refused meanwhile.
    let counts = |counters: &Arc<Counters>| {
        let errors = counters.errors.lock();
        errors.iter().filter(|(code, _)| *code != "LOADING").map(|(_, count)| count).sum::<u64>()
    };
    local.shared.host.counters.iter().map(counts).sum()
}

/// What is left of a file behind a snapshot that it began with.
type Rest = Chain<Cursor<Vec<u8>>, File>;

/// Loads the snapshot that a file begins with. Returns the rest of it, and where that begins.
async fn load_snapshot(
    local: &Local,
    place: &Place,
    name: &[u8],
    file: File,
    before: u64,
) -> Result<(Rest, u64), Refused> {
    let is_old = name == place.stem();
    line(
        Level::Notice,
        match is_old {
            true => "Reading RDB preamble from AOF file...",
            false => "Reading RDB base file on AOF loading...",
        },
    );
    let shared = local.shared.clone();
    let (sender, receiver) = flume::bounded(1);
    // The threads of shards put in what another one reads.
    let read = move || {
        // In the log, keys whose time has come are deleted by records.
        let how = How { drops_expired: false, ..How::of(&shared.host.settings()) };
        let mut dealer = Dealer::new(shared.clone(), how.clone());
        let total_bytes = file.len().unwrap_or(0);
        // Who waits for it may have ended.
        let _ = sender.send(load::read(file, (total_bytes, before), &shared.host, &how, &mut dealer));
    };
    let thread = std::thread::Builder::new().name("loader".into()).spawn(read);
    let loaded = loop {
        if thread.is_err() {
            break None;
        }
        match receiver.try_recv() {
            Ok(loaded) => break Some(loaded),
            Err(flume::TryRecvError::Empty) => rt::sleep_ms(1).await,
            Err(flume::TryRecvError::Disconnected) => break None,
        }
    };
    match loaded {
        Some(Ok(loaded)) => {
            if is_old {
                line(Level::Notice, "Reading the remaining AOF tail...");
            }
            Ok((Cursor::new(loaded.rest).chain(loaded.input), loaded.bytes))
        }
        other => {
            if let Some(Err(refusal)) = &other {
                load::log_refusal(&place.path(name), refusal);
            }
            let what = if is_old { "RDB preamble of the AOF file" } else { "RDB base file" };
            warn(&format!("Error reading the {what} {}, AOF loading aborted", shown(name)));
            Err(Refused)
        }
    }
}

async fn load_file(
    local: &Rc<Local>,
    place: &Place,
    name: &[u8],
    (is_last, before): (bool, u64),
) -> Result<(), Refused> {
    let path = place.path(name);
    let mut file = File::open(&path).map_err(|error| {
        let (name, error) = (shown(name), error_text(&error));
        warn(&format!("Fatal error: can't open the append log file {name} for reading: {error}"));
        Refused
    })?;
    let mut magic = [0; 6];
    let read = file.read(&mut magic).and_then(|bytes| file.seek(0).map(|()| bytes));
    let read = read.map_err(|error| {
        warn(&format!(
            "Unrecoverable error reading the append only file {}: {}",
            shown(name),
            error_text(&error)
        ));
        Refused
    })?;
    let (input, start) = match MAGICS.iter().any(|known| magic[..read].starts_with(known)) {
        true => load_snapshot(local, place, name, file, before).await?,
        false => (Cursor::new(Vec::new()).chain(file), 0),
    };
    let loading = &local.shared.host.persistence.loading;
    let mut reader = Reader::new(input, start, |name| table().find(name).is_some());
    let mut player = Player::new(local);
    let outcome = loop {
        match reader.next() {
            Ok(None) => break Ok(()),
            Err(fault) => break Err(fault),
            Ok(Some(commands)) => {
                if !player.play(commands).await {
                    break Err(Fault::Format(reader.position()));
                }
                loading.loaded_bytes.store(before + reader.position(), Ordering::Relaxed);
            }
        }
        rt::yield_now().await;
    };
    player.end();
    outcome.or_else(|fault| excuse(local, place, name, is_last, fault))
}

/// Cuts off what a crash left half written, if that is what is wrong and the settings allow it.
fn excuse(local: &Local, place: &Place, name: &[u8], is_last: bool, fault: Fault) -> Result<(), Refused> {
    let text = shown(name);
    let (valid_up_to, in_transaction) = match fault {
        Fault::CutOff { valid_up_to, in_transaction } => (valid_up_to, in_transaction),
        Fault::Format(position) => {
            warn(&format!(
                "Bad file format reading the append only file {text}: make a backup of your AOF file, then use \
                 ./redis-check-aof --fix <filename.manifest>"
            ));
            warn(&format!("The file is no log at or before position {position}"));
            return Err(Refused);
        }
        Fault::Unknown(command) => {
            let command = shown(&command);
            warn(&format!("Unknown command '{command}' reading the append only file {text}"));
            return Err(Refused);
        }
        Fault::Read(error) => {
            let error = error_text(&error);
            warn(&format!("Unrecoverable error reading the append only file {text}: {error}"));
            return Err(Refused);
        }
    };
    if in_transaction {
        warn(&format!("Revert incomplete MULTI/EXEC transaction in AOF file {text}"));
    }
    if local.shared.host.settings().bool(P::AOF_LOAD_TRUNCATED) {
        warn(&format!("!!! Warning: short read while loading the AOF file {text}!!!"));
        if !is_last {
            warn("Fatal error: the truncated file is not the last file");
            return Err(Refused);
        }
        warn(&format!("!!! Truncating the AOF {text} at offset {valid_up_to} !!!"));
        match File::edit(&place.path(name)).and_then(|file| file.truncate(valid_up_to).and(file.sync())) {
            Ok(()) => {
                warn(&format!("AOF {text} loaded anyway because aof-load-truncated is enabled"));
                return Ok(());
            }
            Err(error) => {
                let error = error_text(&error);
                warn(&format!("Error truncating the AOF file {text}: {error}"));
            }
        }
    }
    warn(&format!(
        "Unexpected end of file reading the append only file {text}. You can: 1) Make a backup of your AOF file, then \
         use ./redis-check-aof --fix <filename.manifest>. 2) Alternatively you can set the 'aof-load-truncated' \
         configuration option to yes and restart the server."
    ));
    Err(Refused)
}
