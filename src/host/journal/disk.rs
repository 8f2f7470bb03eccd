//! A file as the log writes it.
use std::io::{self, IoSlice};
use std::path::Path;

use crate::rt::disk::File;

/// A file that is only appended to.
#[derive(Debug)]
pub struct LogFile(File);

impl LogFile {
    /// Opens a file to write behind its end; makes it if it is missing.
    ///
    /// # Errors
    /// What the system answers.
    pub fn append(path: &Path) -> io::Result<LogFile> {
        File::append(path).map(LogFile)
    }

    /// Makes an empty file, whatever was there.
    ///
    /// # Errors
    /// What the system answers.
    pub fn create(path: &Path) -> io::Result<LogFile> {
        let file = LogFile::append(path)?;
        if file.bytes()? > 0 {
            file.cut(0)?;
        }
        Ok(file)
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// What the system answers.
    pub fn bytes(&self) -> io::Result<u64> {
        self.0.len()
    }

    /// Cuts it back to a length.
    ///
    /// # Errors
    /// What the system answers.
    pub fn cut(&self, bytes: u64) -> io::Result<()> {
        self.0.truncate(bytes)
    }

    /// Writes with one call of the system if that takes all of it.
    ///
    /// # Errors
    /// How many bytes were written before the system refused, and what it answered.
    pub fn write_all(&self, parts: &[IoSlice<'_>]) -> Result<(), (u64, io::Error)> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let mut done = self.put(parts).map_err(|error| (0, error))?;
        if done == total {
            return Ok(());
        }
        let all = joined(parts);
        while done < total {
            match self.put(&[IoSlice::new(&all[done..])]) {
                Ok(0) => return Err((done as u64, io::ErrorKind::WriteZero.into())),
                Ok(bytes) => done += bytes,
                Err(error) => return Err((done as u64, error)),
            }
        }
        Ok(())
    }

    fn put(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            match self.0.write_parts(parts) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// Waits until what was written is on the disk.
    ///
    /// # Errors
    /// What the system answers.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

/// The parts as one.
pub(super) fn joined(parts: &[IoSlice<'_>]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.iter().copied()).collect()
}
