//! The libraries of functions that the process knows.
//!
//! Each shard runs a library's code on its own, when it first needs one of its functions; `Libraries::version` tells
//! when to look again. Must stay true: names of functions are unique over all libraries, whatever their case.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::flags::Flags;
use crate::wire::Error;

/// A function of a library.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: Option<Vec<u8>>,
    /// What it says about itself.
    pub flags: Flags,
}

/// A library.
#[derive(Debug)]
pub struct Library {
    /// Its name.
    pub name: String,
    /// All of its text, the first line too.
    pub code: Box<[u8]>,
    /// Where the Lua code begins.
    pub code_at: usize,
    /// What it registers.
    pub functions: Vec<Function>,
}

/// What FUNCTION RESTORE does with the libraries that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restore {
    /// They go.
    Flush,
    /// They stay; none may have the same name.
    Append,
    /// They stay, unless one has the same name.
    Replace,
}

type All = BTreeMap<String, Arc<Library>>;

/// All libraries.
#[derive(Debug, Default)]
pub struct Libraries {
    all: Mutex<All>,
    version: AtomicU64,
}

impl Libraries {
    /// Changes whenever they do.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    /// All of them, by name, and the version of that.
    pub fn all(&self) -> (u64, Vec<Arc<Library>>) {
        let all = self.all.lock();
        (self.version(), all.values().cloned().collect())
    }

    /// How many libraries there are, and functions in them.
    pub fn counts(&self) -> (usize, usize) {
        let all = self.all.lock();
        (all.len(), all.values().map(|library| library.functions.len()).sum())
    }

    /// Bytes of all code.
    pub fn bytes(&self) -> usize {
        self.all.lock().values().map(|library| library.code.len() + size_of::<Library>()).sum()
    }

    fn change<R>(&self, change: impl FnOnce(&mut All) -> Result<R, Error>) -> Result<R, Error> {
        let mut all = self.all.lock();
        let result = change(&mut all)?;
        self.version.fetch_add(1, Relaxed);
        Ok(result)
    }

    /// Whether a library of this name is refused for the one that is there.
    ///
    /// # Errors
    /// Then.
    pub fn check_name(&self, name: &str, replace: bool) -> Result<(), Error> {
        if !replace && self.all.lock().contains_key(name) {
            return Err(Error::err(format_args!("Library '{name}' already exists")));
        }
        Ok(())
    }

    /// Adds a library.
    ///
    /// # Errors
    /// When there is one of its name, unless it is to `replace` that, or another one has a function of it.
    pub fn insert(&self, library: Library, replace: bool) -> Result<(), Error> {
        self.change(|all| {
            if !replace && all.contains_key(&library.name) {
                return Err(Error::err(format_args!("Library '{}' already exists", library.name)));
            }
            check_functions(all.values().filter(|other| other.name != library.name), &library)?;
            all.insert(library.name.clone(), Arc::new(library));
            Ok(())
        })
    }

    /// Adds several libraries, or none.
    ///
    /// # Errors
    /// As [`Libraries::insert`].
    pub fn restore(&self, libraries: Vec<Library>, policy: Restore) -> Result<(), Error> {
        self.change(|all| {
            let mut new = if policy == Restore::Flush { All::new() } else { all.clone() };
            if policy == Restore::Replace {
                libraries.iter().for_each(|library| drop(new.remove(&library.name)));
            }
            for library in libraries {
                if new.contains_key(&library.name) {
                    return Err(Error::err(format_args!("Library {} already exists", library.name)));
                }
                check_functions(new.values(), &library)?;
                new.insert(library.name.clone(), Arc::new(library));
            }
            *all = new;
            Ok(())
        })
    }

    /// Deletes a library.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn delete(&self, name: &[u8]) -> Result<(), Error> {
        self.change(|all| {
            let known = std::str::from_utf8(name).ok().and_then(|name| all.remove(name));
            known.map(drop).ok_or_else(|| Error::err("Library not found"))
        })
    }

    /// Deletes all.
    pub fn flush(&self) {
        self.all.lock().clear();
        self.version.fetch_add(1, Relaxed);
    }
}

/// Refuses `library` if one of `others` has a function of one of its names.
fn check_functions<'a>(
    others: impl Iterator<Item = &'a Arc<Library>>,
    library: &Library,
) -> Result<(), Error> {
    for other in others.flat_map(|other| &other.functions) {
        if let Some(same) = library.functions.iter().find(|f| f.name.eq_ignore_ascii_case(&other.name)) {
            return Err(Error::err(format_args!("Function {} already exists", same.name)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, functions: &[&str]) -> Library {
        let function =
            |name: &&str| Function { name: name.to_string(), description: None, flags: Flags::default() };
        let functions = functions.iter().map(function).collect();
        Library { name: name.to_string(), code: Box::from(&b"x"[..]), code_at: 0, functions }
    }

    fn names(libraries: &Libraries) -> Vec<String> {
        libraries.all().1.iter().map(|library| library.name.clone()).collect()
    }

    #[test]
    fn names_are_unique() {
        let libraries = Libraries::default();
        libraries.insert(library("a", &["f"]), false).unwrap();
        let refused = |library, replace| libraries.insert(library, replace).unwrap_err().to_string();
        assert_eq!(refused(library("a", &["g"]), false), "ERR Library 'a' already exists");
        assert_eq!(refused(library("b", &["F"]), false), "ERR Function F already exists");
        assert_eq!(libraries.version(), 1);
        libraries.insert(library("a", &["f", "g"]), true).unwrap();
        assert_eq!((libraries.version(), libraries.counts()), (2, (1, 2)));
        assert_eq!(libraries.delete(b"b").unwrap_err().to_string(), "ERR Library not found");
        libraries.delete(b"a").unwrap();
        assert_eq!(libraries.counts(), (0, 0));
    }

    #[test]
    fn restoring_is_all_or_nothing() {
        let libraries = Libraries::default();
        libraries.insert(library("a", &["f"]), false).unwrap();
        let new = || vec![library("b", &["g"]), library("a", &["h"])];
        let refusal = libraries.restore(new(), Restore::Append).unwrap_err().to_string();
        assert_eq!(
            (&refusal[..], names(&libraries)),
            ("ERR Library a already exists", vec!["a".to_string()])
        );
        libraries.restore(new(), Restore::Replace).unwrap();
        assert_eq!(libraries.counts(), (2, 2));
        libraries.restore(vec![library("c", &["g"])], Restore::Flush).unwrap();
        assert_eq!(names(&libraries), ["c"]);
        libraries.flush();
        assert_eq!((libraries.counts(), libraries.version()), ((0, 0), 4));
    }
}
