//! Loads the append-only log at the start: its commands run through a session like those of a client, whose replies
//! nobody reads. So routing, transactions and several shards are what they always are.
//!
//! Must stay true: a file that is damaged in the middle, or is no log, refuses the start; only the end of the last file
//! that has anything may be cut off, and only if the settings allow it.
use std::io::{Cursor, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::clock;
use crate::cmd::cx::{Client, WriteStores};
use crate::cmd::table::table;
use crate::config::P;
use crate::conn::session::{Session, Turn};
use crate::host::{ClientInfo, Counters, error_text};
use crate::persist::aof::Aof;
use crate::persist::aof::files::{Place, Refused, shown};
use crate::persist::aof::manifest::Manifest;
use crate::persist::aof::reader::{Fault, Reader};
use crate::persist::background;
use crate::persist::insert::How;
use crate::persist::load::{self, Start};
use crate::rt;
use crate::rt::disk::File;
use crate::rt::log::{Level, line};
use crate::script::commands::known;
use crate::shard::hold::hold_all;
use crate::shard::local::Local;
use crate::shard::logged::write_unit;
use crate::store::Store;

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

/// Loads what the server begins with, then sees to its files until the server ends. Runs on the first shard.
pub async fn attend(local: Rc<Local>, start: Start) {
    let host = &local.shared.host;
    if let Start::Snapshot(file, bytes) = start
        && !load::load_snapshot(&local.shared, file, bytes).await
    {
        std::process::exit(1);
    }
    let Ok(aof) = begin(&local).await else { std::process::exit(1) };
    load::end(host);
    line(Level::Notice, "Ready to accept connections tcp");
    while !host.stopping.load(Ordering::Relaxed) {
        rt::sleep_ms(TICK_MS).await;
        background::tend(&local).await;
        aof.tend(&local).await;
        reload_if_asked(&local, &aof).await;
    }
}

/// Empties all databases and loads the log again, for those who asked for it.
async fn reload_if_asked(local: &Rc<Local>, aof: &Aof) {
    let host = &local.shared.host;
    let asked = host.rewrites.lock().take_reloads();
    for sender in asked {
        let is_loaded = reload(local, aof).await.is_ok();
        // Who asked may be gone.
        let _ = sender.send(is_loaded);
    }
}

async fn reload(local: &Rc<Local>, aof: &Aof) -> Result<(), Refused> {
    let host = &local.shared.host;
    let place = Place::of(&host.settings());
    let was_on = host.journal.is_on();
    hold_all(local, |stores, now| {
        write_unit(&host.journal, stores);
        host.journal.set_on(false);
        let mut stores = WriteStores::Many(stores);
        stores.for_each(Store::flush_all);
        known().libraries.flush();
        local.door(now).spread(stores);
        load::begin(host, 0);
    })
    .await;
    let outcome = async {
        let manifest = place.read_manifest()?;
        let loaded = load(local, &place, &manifest).await?;
        if was_on {
            aof.resume(local, manifest, (loaded.bytes, loaded.base_bytes)).await?;
        }
        Ok(())
    };
    let outcome = outcome.await;
    host.journal.set_on(was_on);
    load::end(host);
    if outcome.is_ok() {
        // What was emptied and loaded again is what the log has.
        let changes = host.sum(|counters| &counters.dirty);
        host.persistence.saved_changes.store(changes, Ordering::Relaxed);
        line(Level::Notice, "Append Only File loaded by DEBUG LOADAOF");
    }
    outcome
}

async fn begin(local: &Rc<Local>) -> Result<Rc<Aof>, Refused> {
    let settings = local.shared.host.settings();
    let place = Place::of(&settings);
    if !settings.bool(P::APPENDONLY) {
        return Ok(Aof::new(place.clone(), place.read_manifest()?));
    }
    let manifest = place.prepare()?;
    let loaded = load(local, &place, &manifest).await?;
    for counters in &local.shared.host.counters {
        counters.reset();
    }
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
                Turn::Blocked(_) | Turn::Close | Turn::Shutdown(_) | Turn::ReloadLog => return false,
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
    let loading = &host.persistence.loading;
    loading.total_bytes.store(sizes.iter().sum(), Ordering::Relaxed);
    let mut offset = 0;
    let errors_before = error_replies(local);
    for (index, (entry, bytes)) in manifest.to_load().zip(&sizes).enumerate() {
        if *bytes == 0 {
            continue;
        }
        let start = clock::instant();
        load_file(local, place, &entry.name, last == Some(index), (*bytes, offset)).await?;
        offset += bytes;
        let kind = if index == 0 && manifest.base.is_some() { "base" } else { "incr" };
        let (name, seconds) = (shown(&entry.name), start.elapsed().as_secs_f64());
        line(Level::Notice, &format!("DB loaded from {kind} file {name}: {seconds:.3} seconds"));
    }
    let errors = error_replies(local) - errors_before;
    if errors > 0 {
        warn(&format!("== CRITICAL == {errors} commands of the append only files were answered with errors"));
    }
    let base_bytes = if manifest.base.is_some() { sizes[0] } else { 0 };
    // The last file may have been cut.
    Ok(Loaded { bytes: place.sizes(manifest)?.iter().sum(), base_bytes })
}

fn error_replies(local: &Local) -> u64 {
    // Clients that do not wait for the end of loading, or of a script in it, are refused meanwhile.
    let counts = |counters: &Arc<Counters>| {
        let errors = counters.errors.lock();
        errors
            .iter()
            .filter(|(code, _)| !matches!(code.as_str(), "LOADING" | "BUSY"))
            .map(|(_, count)| count)
            .sum::<u64>()
    };
    local.shared.host.counters.iter().map(counts).sum()
}

/// Loads a file of `bytes`, `offset` of which were loaded from others.
async fn load_file(
    local: &Rc<Local>,
    place: &Place,
    name: &[u8],
    is_last: bool,
    (bytes, offset): (u64, u64),
) -> Result<(), Refused> {
    let host = &local.shared.host;
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
    let (mut rest, mut position) = (Vec::new(), 0);
    if MAGICS.iter().any(|known| magic[..read].starts_with(known)) {
        let is_old = name == place.stem();
        let text = if is_old {
            "Reading RDB preamble from AOF file..."
        } else {
            "Reading RDB base file on AOF loading..."
        };
        line(Level::Notice, text);
        // What the log deletes later must not be missing then.
        let how = How { expired_before_ms: 0, ..How::of(&host.settings()) };
        let loaded = load::read_beside(&local.shared, file, (bytes, offset), how).await;
        let loaded = loaded.map_err(|refusal| {
            load::log_refusal(&path, &refusal);
            let what = if is_old { "RDB preamble of the AOF file" } else { "RDB base file" };
            warn(&format!("Error reading the {what} {}, AOF loading aborted", shown(name)));
            Refused
        })?;
        if is_old {
            line(Level::Notice, "Reading the remaining AOF tail...");
        }
        (file, rest, position) = (loaded.input, loaded.rest, loaded.bytes);
    }
    let source = Cursor::new(rest).chain(file);
    let mut reader = Reader::new(source, position, |name| table().find(name).is_some());
    let mut player = Player::new(local);
    let outcome = loop {
        host.persistence.loading.loaded_bytes.store(offset + reader.position(), Ordering::Relaxed);
        match reader.next_commands() {
            Ok(None) => break Ok(()),
            Err(fault) => break Err(fault),
            Ok(Some(commands)) => {
                if !player.play(commands).await {
                    break Err(Fault::Format(reader.position()));
                }
            }
        }
        rt::next_turn().await;
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
