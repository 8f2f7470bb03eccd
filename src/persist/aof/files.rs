//! The files of the log by name: where they are, the manifest on the disk, an old log of one file made the first base,
//! what a start finds and leaves.
//!
//! Must stay true: the manifest on the disk is whole at every moment, and names no file that is not there.
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::manifest::{Manifest, Refusal};
use crate::config::{P, Settings};
use crate::host::error_text;
use crate::rt::disk::{self, File};
use crate::rt::log::{Level, line};

/// Writes a line about something that an operator must see to.
pub(super) fn warn(text: &str) {
    line(Level::Warning, text);
}

/// Why a server cannot start; the lines that say so were written.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused;

/// Where the files are.
#[derive(Clone, Debug)]
pub struct Place {
    folder: PathBuf,
    stem: Vec<u8>,
}

/// A name as a log line shows it.
pub fn shown(name: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(name)
}

impl Place {
    /// The place that the settings say, below the working directory.
    pub fn of(settings: &Settings) -> Place {
        Place {
            folder: settings.path(P::APPENDDIRNAME).to_path_buf(),
            stem: settings.text(P::APPENDFILENAME).to_vec(),
        }
    }

    /// First part of the names.
    pub fn stem(&self) -> &[u8] {
        &self.stem
    }

    /// A file of this name.
    pub fn path(&self, name: &[u8]) -> PathBuf {
        self.folder.join(OsStr::from_bytes(name))
    }

    fn named(&self, before: &str, after: &str) -> Vec<u8> {
        [before.as_bytes(), &self.stem, after.as_bytes()].concat()
    }

    fn manifest_path(&self) -> PathBuf {
        self.path(&self.named("", ".manifest"))
    }

    /// The name of an increment that becomes one when the rewrite succeeds that it began with.
    pub fn early_increment(&self) -> Vec<u8> {
        self.named("temp-", ".incr")
    }

    /// The name of a base that is being written.
    pub fn early_base(&self) -> Vec<u8> {
        format!("temp-rewriteaof-bg-{}.aof", std::process::id()).into_bytes()
    }

    /// Makes the folder unless it is there.
    ///
    /// # Errors
    /// What the system answers, which was logged.
    pub fn make_folder(&self) -> io::Result<()> {
        disk::make_folder(&self.folder).inspect_err(|error| {
            warn(&format!(
                "Can't open or create append-only dir {}: {}",
                self.folder.display(),
                error_text(error)
            ));
        })
    }

    /// Reads the manifest; without one, an empty one.
    ///
    /// # Errors
    /// When it cannot be read, or says what no manifest says.
    pub fn read_manifest(&self) -> Result<Manifest, Refused> {
        let path = self.manifest_path();
        if !disk::exists(&path) {
            return Ok(Manifest::default());
        }
        let mut text = Vec::new();
        File::open(&path).and_then(|mut file| file.read_to_end(&mut text)).map_err(|error| {
            warn(&format!(
                "Fatal error: can't open the AOF manifest file {} for reading: {}",
                path.display(),
                error_text(&error)
            ));
            Refused
        })?;
        Manifest::parse(&text).map_err(|refusal| refuse_manifest(&refusal))
    }

    /// Writes the manifest in place of the one that is there.
    ///
    /// # Errors
    /// What the system answers, which was logged. The old one is still in force, unless only the folder could not be
    /// flushed.
    pub fn write_manifest(&self, manifest: &Manifest) -> io::Result<()> {
        let (name, early) = (self.named("", ".manifest"), self.named("temp-", ".manifest"));
        let early_path = self.path(&early);
        let told = |what: &str, name: &[u8]| {
            let text = format!("{what} {}", shown(name));
            move |error: &io::Error| warn(&format!("{text}: {}", error_text(error)))
        };
        let mut file =
            File::create(&early_path).inspect_err(told("Can't open the AOF manifest file", &early))?;
        file.write_all(&manifest.text())
            .inspect_err(told("Error trying to write the temporary AOF manifest file", &early))?;
        file.sync().inspect_err(told("Fail to fsync the temp AOF file", &early))?;
        drop(file);
        // The files that it names come first.
        let folder = self.folder.as_os_str().as_bytes();
        disk::sync_folder(&self.folder).inspect_err(told("Fail to fsync AOF directory", folder))?;
        let what = format!("Error trying to rename the temporary AOF manifest file {} into", shown(&early));
        disk::rename(&early_path, &self.path(&name)).inspect_err(told(&what, &name))?;
        disk::sync_folder(&self.folder).inspect_err(told("Fail to fsync AOF directory", folder))
    }

    /// What a start finds: leftovers are removed, an old log of one file becomes the base.
    ///
    /// # Errors
    /// When the manifest is refused or the old log cannot be moved.
    pub fn prepare(&self) -> Result<Manifest, Refused> {
        self.remove_leftovers();
        let mut manifest = self.read_manifest()?;
        self.adopt_old_file(&mut manifest)?;
        Ok(manifest)
    }

    fn remove_leftovers(&self) {
        let leftovers = [self.early_increment(), self.named("temp-", ".manifest")];
        let is_leftover = |path: &PathBuf| {
            path.file_name().map(OsStr::as_bytes).is_some_and(|name| {
                leftovers.iter().any(|leftover| leftover == name) || name.starts_with(b"temp-rewriteaof-")
            })
        };
        if !disk::exists(&self.folder) {
            return;
        }
        for path in disk::list(&self.folder).unwrap_or_default().into_iter().filter(is_leftover) {
            if disk::remove(&path).is_ok() {
                line(Level::Notice, &format!("Removing the temp file {}", path.display()));
            }
        }
    }

    /// Redis before version 7 had one file beside the snapshot.
    fn adopt_old_file(&self, manifest: &mut Manifest) -> Result<(), Refused> {
        let old = Path::new(OsStr::from_bytes(&self.stem));
        if !old.is_file() {
            return Ok(());
        }
        let new = self.path(&self.stem);
        // A manifest that names it and a file that is still here: a move that was cut short.
        let was_begun = manifest.increments.is_empty()
            && manifest.base.as_ref().is_some_and(|base| base.name == self.stem)
            && !disk::exists(&new);
        if !manifest.is_empty() && !was_begun {
            return Ok(());
        }
        self.make_folder().map_err(|_| Refused)?;
        manifest.adopt(&self.stem);
        self.write_manifest(manifest).map_err(|_| Refused)?;
        let moved = disk::rename(old, &new)
            .and_then(|()| disk::sync_folder(&self.folder))
            .and_then(|()| disk::sync_folder(Path::new(".")));
        let (name, folder) = (shown(&self.stem), self.folder.display());
        if let Err(error) = moved {
            warn(&format!(
                "Error trying to move the old AOF file {name} into dir {folder}: {}",
                error_text(&error)
            ));
            return Err(Refused);
        }
        let text = format!(
            "Successfully migrated an old-style AOF file ({name}) into the AOF directory ({folder})."
        );
        line(Level::Notice, &text);
        Ok(())
    }

    /// Bytes of each file to load.
    ///
    /// # Errors
    /// When one of them is missing or out of reach.
    pub fn sizes(&self, manifest: &Manifest) -> Result<Vec<u64>, Refused> {
        let size = |name: &[u8]| {
            File::open(&self.path(name)).and_then(|file| file.len()).map_err(|error| {
                warn(&format!(
                    "Unable to obtain the AOF file {} length. stat: {}",
                    shown(name),
                    error_text(&error)
                ));
                Refused
            })
        };
        manifest.to_load().map(|entry| size(&entry.name)).collect()
    }
}

fn refuse_manifest(refusal: &Refusal) -> Refused {
    warn("\n*** FATAL AOF MANIFEST FILE ERROR ***\n");
    if let Some((number, text)) = &refusal.line {
        warn(&format!("Reading the manifest file, at line {number}\n"));
        warn(&format!(">>> '{text}'\n"));
    }
    warn(&format!("{}\n", refusal.reason));
    Refused
}
