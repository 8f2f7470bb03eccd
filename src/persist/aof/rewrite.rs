//! Switching the log on and off, and rewriting it: a new base in the background, the files before it retired.
//!
//! Lives on the first shard's thread, which looks in from time to time ([`Aof::tend`]).
//!
//! Must stay true: what was acknowledged is in the files that the manifest on the disk names, at every moment: an
//! increment is named before it is written to, and a base before the files that it replaces are retired.
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use super::super::background::is_saving;
use super::base::{is_snapshot, write_base};
use super::files::{Place, Refused, shown, warn};
use super::manifest::Manifest;
use crate::base::clock;
use crate::cmd::cx::WriteStores;
use crate::config::P;
use crate::host::Host;
use crate::host::error_text;
use crate::host::journal::LogFile;
use crate::host::rewrites::{Stage, tell_killed};
use crate::rt;
use crate::rt::disk;
use crate::rt::log::{Level, line};
use crate::shard::hold::{Stores, hold_all};
use crate::shard::local::Local;
use crate::shard::logged::write_unit;

/// Failures in a row after which rewrites that nobody asked for are put off.
const PATIENT_FAILURES: u64 = 3;
/// The longest time that one is put off, minutes.
const DELAY_MINUTES_MAX: u64 = 60;

/// Whether changes are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No.
    Off,
    /// Yes.
    On,
    /// They will be when there is a base.
    Starting,
}

/// How long rewrites are put off after failures.
#[derive(Clone, Copy, Default)]
struct Delay {
    minutes: u64,
    until_s: Option<u64>,
}

impl Delay {
    /// Whether a rewrite must wait, after so many failures.
    fn must_wait(&mut self, failures: u64, now_s: u64) -> bool {
        if failures < PATIENT_FAILURES {
            *self = Delay::default();
            return false;
        }
        if let Some(until_s) = self.until_s {
            if now_s >= until_s {
                self.until_s = None;
            }
            return now_s < until_s;
        }
        self.minutes = (self.minutes * 2).clamp(1, DELAY_MINUTES_MAX);
        self.until_s = Some(now_s + self.minutes * 60);
        warn(&format!(
            "Background AOF rewrite has repeatedly failed and triggered the limit, will retry in {} minutes",
            self.minutes
        ));
        true
    }
}

/// The log's files, and what becomes of them.
pub struct Aof {
    place: Place,
    manifest: RefCell<Manifest>,
    state: Cell<State>,
    delay: Cell<Delay>,
    /// How the rewrite under way ended, and whether its base is a snapshot.
    outcome: RefCell<Option<(io::Result<()>, bool)>>,
    /// The rewrite under way is for nothing.
    is_given_up: Cell<bool>,
}

impl Aof {
    /// A log of these files, switched off.
    pub fn new(place: Place, manifest: Manifest) -> Rc<Aof> {
        Rc::new(Aof {
            place,
            manifest: RefCell::new(manifest),
            state: Cell::new(State::Off),
            delay: Cell::default(),
            outcome: RefCell::default(),
            is_given_up: Cell::new(false),
        })
    }

    /// Begins to log behind what was loaded, `current_bytes` with a base of `base_bytes`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub async fn start(&self, local: &Rc<Local>, current_bytes: u64, base_bytes: u64) -> Result<(), Refused> {
        let host = &local.shared.host;
        self.place.make_folder().map_err(|_| Refused)?;
        let mut manifest = self.manifest.borrow().clone();
        if manifest.is_empty() {
            let is_snapshot = is_snapshot(&host.settings());
            let base = manifest.new_base(self.place.stem(), is_snapshot);
            let early = self.place.path(&self.place.early_base());
            let written = write_base(local, (&early, is_snapshot), |_| Ok(())).await;
            written.and_then(|()| disk::rename(&early, &self.place.path(&base))).map_err(|error| {
                warn(&format!("Write error writing append only file on disk: {}", error_text(&error)));
                Refused
            })?;
            let text = format!("Creating AOF base file {} on server start", shown(&base));
            line(Level::Notice, &text);
        }
        let (verb, name) = match manifest.increments.last() {
            Some(last) => ("Opening", last.name.clone()),
            None => ("Creating", manifest.new_increment(self.place.stem())),
        };
        let opened = LogFile::append(&self.place.path(&name)).and_then(|file| Ok((file.bytes()?, file)));
        let (bytes, file) = opened.map_err(|error| {
            warn(&format!("Can't open the append-only file {}: {}", shown(&name), error_text(&error)));
            Refused
        })?;
        if manifest != *self.manifest.borrow() {
            self.place.write_manifest(&manifest).map_err(|_| Refused)?;
        }
        *self.manifest.borrow_mut() = manifest;
        hold_all(local, |_, _| {
            // There was no file before it.
            let _ = host.journal.switch(file, bytes);
            host.journal.set_sizes(current_bytes, base_bytes);
            host.journal.set_on(true);
            host.renew_settings();
        })
        .await;
        self.state.set(State::On);
        line(Level::Notice, &format!("{verb} AOF incr file {} on server start", shown(&name)));
        Ok(())
    }

    /// Begins to log behind what was loaded again from the files of this manifest.
    ///
    /// # Errors
    /// As [`Aof::start`].
    pub async fn resume(
        &self,
        local: &Rc<Local>,
        manifest: Manifest,
        (current_bytes, base_bytes): (u64, u64),
    ) -> Result<(), Refused> {
        *self.manifest.borrow_mut() = manifest;
        self.start(local, current_bytes, base_bytes).await
    }

    /// Does what is due.
    pub async fn tend(self: &Rc<Aof>, local: &Rc<Local>) {
        let host = &local.shared.host;
        let wants = host.settings().bool(P::APPENDONLY);
        if !wants && self.state.get() != State::Off {
            self.switch_off(local).await;
        }
        if wants && self.state.get() == State::Off {
            self.state.set(State::Starting);
            let mut rewrites = host.rewrites.lock();
            (rewrites.is_scheduled, rewrites.is_first) = (true, true);
        }
        let outcome = self.outcome.take();
        if let Some((outcome, is_snapshot)) = outcome {
            self.ended(host, outcome, is_snapshot);
        }
        self.remove_history(host);
        if self.is_due(host) {
            self.begin(local);
        }
    }

    async fn switch_off(&self, local: &Local) {
        let host = &local.shared.host;
        let is_rewriting = host.rewrites.lock().stage == Stage::Running;
        hold_all(local, |stores, _| {
            write_unit(&host.journal, stores);
            host.journal.set_on(false);
            host.renew_settings();
            if is_rewriting {
                // The only snapshot that there can be.
                WriteStores::Many(stores).for_each(|store| store.cancel_snapshot());
            }
        })
        .await;
        host.journal.close();
        self.state.set(State::Off);
        let mut rewrites = host.rewrites.lock();
        (rewrites.is_scheduled, rewrites.is_first) = (false, false);
        if is_rewriting {
            tell_killed();
            self.is_given_up.set(true);
        }
    }

    fn is_due(&self, host: &Host) -> bool {
        if is_saving(&host.persistence) {
            return false;
        }
        let rewrites = host.rewrites.lock();
        match rewrites.stage {
            Stage::Running => return false,
            Stage::Asked => return true,
            Stage::Idle => {}
        }
        let (failures, is_scheduled) = (rewrites.failures, rewrites.is_scheduled);
        drop(rewrites);
        let growth = if is_scheduled { None } else { self.growth(host) };
        if !is_scheduled && growth.is_none() {
            return false;
        }
        let mut delay = self.delay.get();
        let must_wait = delay.must_wait(failures, clock::wall_ms() / 1000);
        self.delay.set(delay);
        if let Some(growth) = growth.filter(|_| !must_wait) {
            line(Level::Notice, &format!("Starting automatic rewriting of AOF on {growth}% growth"));
        }
        !must_wait
    }

    /// By how much the log has grown, percent, if that is enough for a rewrite.
    fn growth(&self, host: &Host) -> Option<u64> {
        let settings = host.settings();
        let percent = settings.int(P::AUTO_AOF_REWRITE_PERCENTAGE).max(0) as u64;
        let status = host.journal.status();
        if self.state.get() != State::On
            || percent == 0
            || status.current_bytes <= settings.memory(P::AUTO_AOF_REWRITE_MIN_SIZE)
        {
            return None;
        }
        let ratio = u128::from(status.current_bytes) * 100 / u128::from(status.base_bytes.max(1));
        let growth = u64::try_from(ratio.saturating_sub(100)).unwrap_or(u64::MAX);
        (growth >= percent).then_some(growth)
    }

    /// A new file for what is logged from the cut on; `None`: nothing is logged.
    fn next_file(&self) -> io::Result<Option<LogFile>> {
        self.place.make_folder()?;
        let mut manifest = self.manifest.borrow().clone();
        let name = match self.state.get() {
            State::Off => return Ok(None),
            State::Starting => self.place.early_increment(),
            State::On => manifest.new_increment(self.place.stem()),
        };
        let file = LogFile::create(&self.place.path(&name)).inspect_err(|error| {
            warn(&format!("Can't open the append-only file {}: {}", shown(&name), error_text(error)));
        })?;
        if self.state.get() == State::On {
            self.place.write_manifest(&manifest)?;
            *self.manifest.borrow_mut() = manifest;
        }
        line(Level::Notice, &format!("Creating AOF incr file {} on background rewrite", shown(&name)));
        Ok(Some(file))
    }

    fn begin(self: &Rc<Aof>, local: &Rc<Local>) {
        let host = &local.shared.host;
        host.rewrites.lock().begin();
        self.is_given_up.set(false);
        let file = match self.next_file() {
            Ok(file) => file,
            Err(_) => {
                host.rewrites.lock().end(Some(false));
                host.rewrites.lock().is_scheduled = self.state.get() == State::Starting;
                return;
            }
        };
        let pid = std::process::id();
        line(Level::Notice, &format!("Background append only file rewriting started by pid {pid}"));
        host.journal.set_disk_busy(true);
        let (aof, local) = (self.clone(), local.clone());
        // The settings may be others when it ends.
        let is_snapshot = is_snapshot(&host.settings());
        rt::spawn(async move {
            let outcome = aof.write(&local, file, is_snapshot).await;
            local.shared.host.journal.set_disk_busy(false);
            *aof.outcome.borrow_mut() = Some((outcome, is_snapshot));
        });
    }

    /// Writes the base; the log goes on in `file` from the moment that the base is of.
    async fn write(&self, local: &Rc<Local>, file: Option<LogFile>, is_snapshot: bool) -> io::Result<()> {
        let host = &local.shared.host;
        let early = self.place.path(&self.place.early_base());
        let (mut file, is_cut) = (file, Cell::new(true));
        let mut cut = |stores: &mut Stores<'_>| {
            if self.is_given_up.get() {
                return Err(io::Error::other("the rewriting was given up"));
            }
            // What was noted before the cut is in the base, and belongs to the file before.
            write_unit(&host.journal, stores);
            if let Some(file) = file.take() {
                is_cut.set(host.journal.switch(file, 0));
                host.journal.set_on(true);
                host.renew_settings();
            }
            Ok(())
        };
        let outcome = write_base(local, (&early, is_snapshot), &mut cut).await;
        if outcome.is_err() && self.state.get() == State::On {
            // The manifest names the new file as the last one.
            let _ = hold_all(local, |stores, _| cut(stores)).await;
        }
        let outcome = outcome.and_then(|()| match is_cut.get() {
            true => Ok(()),
            false => Err(io::Error::other("the log has records that cannot be written")),
        });
        outcome.inspect_err(|error| {
            if !self.is_given_up.get() {
                warn(&format!("Write error writing append only file on disk: {}", error_text(error)));
            }
        })?;
        let text = format!("Successfully created the temporary AOF base file {}", early.display());
        line(Level::Notice, &text);
        Ok(())
    }

    /// A rewrite ended.
    fn ended(&self, host: &Host, outcome: io::Result<()>, is_snapshot: bool) {
        let went_well = match outcome {
            _ if self.is_given_up.get() => None,
            Ok(()) => {
                line(Level::Notice, "Background AOF rewrite terminated with success");
                Some(self.install(host, is_snapshot).is_ok())
            }
            Err(_) => {
                warn("Background AOF rewrite terminated with error");
                Some(false)
            }
        };
        if went_well != Some(true) {
            host.journal.remove_later(self.place.path(&self.place.early_base()));
        } else {
            line(Level::Notice, "Background AOF rewrite finished successfully");
            // Whoever sees that it is over sees no files from before it.
            self.remove_history(host);
        }
        let mut rewrites = host.rewrites.lock();
        rewrites.end(went_well);
        match (self.state.get(), went_well) {
            (State::Starting, Some(true)) => self.state.set(State::On),
            (State::Starting, _) => {
                rewrites.is_scheduled = true;
                // It has a part of the changes only, and the next try begins anew.
                host.journal.set_on(false);
                host.journal.close();
                host.renew_settings();
            }
            _ => {}
        }
    }

    /// Puts the new base in the place of the files before it.
    fn install(&self, host: &Host, is_snapshot: bool) -> io::Result<()> {
        let mut manifest = self.manifest.borrow().clone();
        let place = &self.place;
        let moved = |kind: &str, from: &[u8], to: &[u8]| {
            let (shown_from, shown_to) = (shown(from), shown(to));
            disk::rename(&place.path(from), &place.path(to)).inspect_err(|error| {
                warn(&format!(
                    "Error trying to rename the temporary AOF {kind} file {shown_from} into {shown_to}: {}",
                    error_text(error)
                ));
            })?;
            let text =
                format!("Successfully renamed the temporary AOF {kind} file {shown_from} into {shown_to}");
            line(Level::Notice, &text);
            Ok::<(), io::Error>(())
        };
        let base = manifest.new_base(place.stem(), is_snapshot);
        moved("base", &place.early_base(), &base)?;
        if self.state.get() == State::Starting {
            let increment = manifest.new_increment(place.stem());
            moved("incr", &place.early_increment(), &increment)?;
        }
        manifest.retire_increments(usize::from(self.state.get() != State::Off));
        // When that fails the new files stay: the manifest on the disk may name them already.
        place.write_manifest(&manifest)?;
        *self.manifest.borrow_mut() = manifest;
        if self.state.get() != State::Off {
            let base_bytes = disk::File::open(&place.path(&base)).and_then(|file| file.len()).unwrap_or(0);
            let bytes = base_bytes + host.journal.file_bytes();
            host.journal.set_sizes(bytes, bytes);
        }
        Ok(())
    }

    /// Has files removed that are no longer needed, unless the settings keep them.
    fn remove_history(&self, host: &Host) {
        if self.manifest.borrow().history.is_empty() || host.settings().bool(P::AOF_DISABLE_AUTO_GC) {
            return;
        }
        let mut manifest = self.manifest.borrow_mut();
        for entry in std::mem::take(&mut manifest.history) {
            let text = format!("Removing the history file {} in the background", shown(&entry.name));
            line(Level::Notice, &text);
            host.journal.remove_later(self.place.path(&entry.name));
        }
        // If that fails, the next manifest says it.
        let _ = self.place.write_manifest(&manifest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_put_rewrites_off_longer_and_longer() {
        let mut delay = Delay::default();
        assert!(!delay.must_wait(2, 0));
        let mut now_s = 100;
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert!(delay.must_wait(3, now_s) && delay.must_wait(3, now_s + minutes * 60 - 1));
            now_s += minutes * 60;
            assert!(!delay.must_wait(3, now_s), "{minutes}");
        }
        assert!(!delay.must_wait(0, now_s));
        assert!(delay.must_wait(3, now_s) && !delay.must_wait(3, now_s + 60));
    }
}
