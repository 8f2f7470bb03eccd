//! The journal over files of a directory of its own.
use std::path::PathBuf;

use super::*;
use crate::base::clock;

/// A directory that goes away with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("perigee-journal-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.0.join(name)).unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn piece(first_db: Option<u32>, last_db: Option<u32>, text: &str) -> Piece<'_> {
    Piece { first_db, last_db, bytes: text.as_bytes() }
}

fn with(settings: &[(&str, &str)]) -> Journal {
    let mut all = Settings::default();
    for (name, value) in settings {
        all.set(name.as_bytes(), &[value.as_bytes()]).unwrap();
    }
    let journal = Journal::default();
    journal.heed(&all);
    journal
}

#[test]
fn select_stands_where_the_database_changes() {
    let journal = Journal::default();
    journal.write(&[piece(Some(0), Some(0), "a"), piece(Some(0), Some(12), "b"), piece(None, None, "c")]);
    journal.write(&[piece(Some(12), Some(12), "d"), piece(Some(3), Some(3), "e")]);
    let expected = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\nabcd*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\ne";
    assert_eq!(String::from_utf8(journal.take_captured()).unwrap(), expected);
}

#[test]
fn a_new_file_begins_with_select_and_the_sizes_go_on() {
    let folder = Folder::new("switch");
    let journal = Journal::default();
    std::fs::write(folder.0.join("a"), "old").unwrap();
    assert!(journal.switch(LogFile::append(&folder.0.join("a")).unwrap(), 3));
    journal.set_sizes(10, 7);
    journal.write(&[piece(Some(1), Some(1), "x")]);
    assert!(journal.switch(LogFile::create(&folder.0.join("b")).unwrap(), 0));
    journal.write(&[piece(Some(1), Some(1), "y")]);
    let select = "*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n";
    assert_eq!(folder.read("a"), format!("old{select}x"));
    assert_eq!(folder.read("b"), format!("{select}y"));
    let status = journal.status();
    assert_eq!((status.current_bytes, status.base_bytes), (10 + 2 * (select.len() as u64 + 1), 7));
    assert_eq!(journal.file_bytes(), select.len() as u64 + 1);
    journal.close();
    journal.write(&[piece(Some(1), Some(1), "z")]);
    assert_eq!(folder.read("b"), format!("{select}y"));
}

#[test]
fn the_time_is_noted_once_a_second() {
    let journal = with(&[("aof-timestamp-enabled", "yes")]);
    clock::freeze(5_000);
    journal.write(&[piece(None, None, "a"), piece(None, None, "b")]);
    journal.write(&[piece(None, None, "c")]);
    clock::freeze(7_999);
    journal.write(&[piece(None, None, "d")]);
    clock::freeze(0);
    assert_eq!(journal.take_captured(), b"#TS:5\r\nabc#TS:7\r\nd");
}

#[test]
fn what_cannot_be_written_is_kept_and_tried_again() {
    let folder = Folder::new("full");
    let journal = Journal::default();
    let told = Arc::new(Mutex::new(Vec::new()));
    let note = told.clone();
    journal.on_trouble(Box::new(move |errno| note.lock().push(errno)));
    // A disk without any room.
    assert!(journal.core.switch(LogFile::append(std::path::Path::new("/dev/full")).unwrap(), 0));
    journal.write(&[piece(None, None, "a")]);
    journal.write(&[piece(None, None, "b")]);
    assert_eq!(journal.trouble().as_deref(), Some("No space left on device"));
    assert_eq!((journal.status().kept_bytes, journal.status().is_well), (2, false));
    assert_eq!(journal.status().current_bytes, 0);
    journal.core.retry(true);
    assert_eq!(*told.lock(), [28, 28]);
    // What belongs to this file goes to no other one.
    assert!(!journal.core.switch(LogFile::create(&folder.0.join("b")).unwrap(), 0));
    told.lock().truncate(2);
    // Room again.
    journal.core.state.lock().put_file(LogFile::create(&folder.0.join("a")).unwrap());
    journal.core.retry(true);
    journal.write(&[piece(None, None, "c")]);
    assert_eq!(folder.read("a"), "abc");
    assert_eq!((journal.trouble(), journal.status().is_well), (None, true));
    assert_eq!(*told.lock(), [28, 28, 0]);
}

#[test]
fn who_waits_for_the_disk_shares_a_flush() {
    const THREADS: u64 = 6;
    let folder = Folder::new("group");
    let journal = with(&[("appendfsync", "always")]);
    assert!(journal.switch(LogFile::create(&folder.0.join("a")).unwrap(), 0));
    // As if one were under way.
    journal.core.syncs.lock().is_running = true;
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let position = journal.core.write(&[piece(None, None, "x")]);
                assert!(journal.core.syncs.lock().synced >= position);
            });
        }
        while journal.core.state.lock().written() < THREADS {
            std::thread::yield_now();
        }
        assert_eq!(journal.core.syncs.lock().flushes, 0);
        journal.core.syncs.lock().is_running = false;
        journal.core.synced.notify_all();
    });
    assert_eq!(journal.core.syncs.lock().flushes, 1);
}

#[test]
fn writes_of_a_thread_keep_their_order_among_others() {
    const WRITES: usize = 50;
    let folder = Folder::new("order");
    let journal = with(&[("appendfsync", "always")]);
    assert!(journal.switch(LogFile::create(&folder.0.join("a")).unwrap(), 0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                for write in 0..WRITES {
                    let text = format!("{thread}.{write};");
                    let position = journal.core.write(&[piece(None, None, &text)]);
                    assert!(journal.core.syncs.lock().synced >= position);
                }
            });
        }
    });
    let text = folder.read("a");
    for thread in 0..4 {
        let own: Vec<&str> = text.split(';').filter(|word| word.starts_with(&format!("{thread}."))).collect();
        let expected: Vec<String> = (0..WRITES).map(|write| format!("{thread}.{write}")).collect();
        assert_eq!(own, expected);
    }
}
