//! Tests of the keyspace events that commands stand for.
use std::collections::HashSet;
use std::sync::Arc;

use super::cx::{Caller, WriteCx, WriteStores};
use super::spec::{Handler, Spec};
use super::{bitmap, generic, geo, hash, hyperloglog, list, set, sorted_set, stream, string};
use crate::base::hash::KeyHash;
use crate::config::Settings;
use crate::host::{Counters, Facts, Host};
use crate::store::Store;
use crate::store::news::KeyEvent;
use crate::wire::{Args, Out, Span};

/// Commands and the events of Redis.
const EVENTS: &str = include_str!("events.txt");

fn rows() -> impl Iterator<Item = &'static Spec> {
    let families = [
        bitmap::COMMANDS,
        generic::COMMANDS,
        geo::COMMANDS,
        hash::COMMANDS,
        hyperloglog::COMMANDS,
        list::COMMANDS,
        set::COMMANDS,
        sorted_set::COMMANDS,
        stream::COMMANDS,
        string::COMMANDS,
    ];
    families.into_iter().flatten().flat_map(|row| std::iter::once(row).chain(row.subs))
}

/// The words of a line.
fn words(line: &str) -> Vec<Vec<u8>> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while !rest.is_empty() {
        let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (word, behind) = quoted.unwrap_or_else(|| rest.split_once(' ').unwrap_or((rest, "")));
        let mut pieces = word.split("\\x");
        let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
        for piece in pieces {
            bytes.push(u8::from_str_radix(&piece[..2], 16).unwrap());
            bytes.extend_from_slice(&piece.as_bytes()[2..]);
        }
        words.push(bytes);
        rest = behind.trim_start();
    }
    words
}

/// Some shards without threads, and a listener of their events.
struct Server {
    host: Host,
    stores: Vec<Store>,
    caller: Caller,
    seen: HashSet<&'static str>,
}

impl Server {
    fn new(shards: usize) -> Server {
        let mut settings = Settings::default();
        settings.set(b"notify-keyspace-events", &[b"KEAn"]).unwrap();
        let facts =
            Facts { settings: settings.clone(), shards, commands: 0, config_file: None, io_driver: "none" };
        let host = Host::new(facts);
        let settings = Arc::new(settings);
        let store = |counters: &Arc<Counters>| Store::new(settings.clone(), counters.clone());
        let stores = host.counters.iter().map(store).collect();
        Server { host, stores, caller: Caller::default(), seen: HashSet::new() }
    }

    /// Executes a line and tells the events.
    fn run(&mut self, line: &str) -> String {
        let words = words(line);
        let number = || std::str::from_utf8(&words[1]).unwrap().parse::<u64>().unwrap();
        match &words[0][..] {
            b"later" => self.stores.iter_mut().for_each(|store| store.now.ms += number()),
            b"select" => self.caller.db = number() as u32,
            _ => self.call(&words),
        }
        self.events()
    }

    fn call(&mut self, words: &[Vec<u8>]) {
        let (mut buf, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            spans.push(Span { at: buf.len() as u32, len: word.len() as u32 });
            buf.extend_from_slice(word);
        }
        let both = words[..words.len().min(2)].join(&b'|').to_ascii_lowercase();
        let named = |row: &&Spec| [&words[0], &both].contains(&&row.name.as_bytes().to_vec());
        let row = rows().filter(|row| !matches!(row.handler, Handler::Container)).find(named).unwrap();
        let Handler::Write(handler) = row.handler else { panic!("{} writes nothing", row.name) };
        self.seen.insert(row.name);
        let mut args = Args::new(&buf, &spans, (0, KeyHash::of(b"")));
        args.seek(1 + usize::from(row.name.contains('|')));
        let (counters, now) = (&*self.host.counters[0], self.stores[0].now);
        let stores = WriteStores::Many(&mut self.stores);
        let events = row.event.as_slice();
        let mut cx = WriteCx::new(stores, &self.caller, &self.host, counters, now, events);
        let _ = handler(&mut cx, &mut args, &mut Out::default());
    }

    fn events(&mut self) -> String {
        let news = self.stores.iter_mut().flat_map(|store| std::mem::take(&mut store.news.events));
        let mut events: Vec<KeyEvent> = news.collect();
        events.sort_by_key(|event| event.number);
        let shown = events.iter().map(|KeyEvent { db, event, key, .. }| {
            let db = if *db == 0 { String::new() } else { format!("{db}:") };
            format!("{db}{} {}", event.name, String::from_utf8_lossy(key))
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

#[test]
fn commands_tell_what_redis_tells() {
    let mut wrong = Vec::new();
    for shards in [1, 3] {
        let mut server = Server::new(shards);
        for line in EVENTS.lines().filter(|line| !line.starts_with('#')) {
            let (command, wanted) = line.split_once(" =>").unwrap_or((line, ""));
            let told = server.run(command);
            if told != wanted.trim_start() {
                wrong.push(format!("{shards}: {command} => {told}; wanted{wanted}"));
            }
        }
        let writes = rows().filter(|row| matches!(row.handler, Handler::Write(_)));
        let missing = writes.filter(|row| !server.seen.contains(row.name));
        wrong.extend(missing.map(|row| format!("{} is not in the table", row.name)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn nobody_is_told_when_nobody_listens() {
    let mut server = Server::new(1);
    server.stores[0].listens = 0;
    assert_eq!(server.run("set key value EX 100"), "");
    assert!(!server.stores[0].has_news);
}
