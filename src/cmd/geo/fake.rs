//! A toy server for the tests of this family: sorted sets in vectors, and the family's commands on them.
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::add::{self, Addition};
use super::query::{self, Form, Query};
use super::{Places, geodist, geodist_unit, geohash, geopos, search};
use crate::base::hash::KeyHash;
use crate::wire::{Args, Error, Out, Protocol, Span};

/// Scores and members, in order.
#[derive(Default)]
pub(super) struct Set(pub Vec<(f64, Vec<u8>)>);

impl Places for Set {
    fn score(&self, member: &[u8]) -> Option<f64> {
        self.0.iter().find(|(_, name)| name == member).map(|(score, _)| *score)
    }

    fn range(
        &self,
        first: f64,
        end: f64,
        visit: &mut dyn FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for (score, name) in &self.0 {
            if (first..end).contains(score) {
                visit(name, *score)?;
            }
        }
        ControlFlow::Continue(())
    }
}

impl Set {
    pub(super) fn put(&mut self, score: f64, member: &[u8]) {
        self.0.retain(|(_, name)| name != member);
        self.0.push((score, member.to_vec()));
        self.0.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    }

    fn add(&mut self, addition: &Addition<'_>) -> usize {
        let mut count = 0;
        for &(score, member) in &addition.members {
            let old = self.score(member);
            if old.map_or(addition.xx, |_| addition.nx) {
                continue;
            }
            self.put(score, member);
            count += usize::from(old.is_none() || addition.ch && old != Some(score));
        }
        count
    }
}

/// Calls `f` with `words` as a handler gets them.
pub(super) fn with_args<T>(words: &[&[u8]], f: impl FnOnce(Args<'_>) -> T) -> T {
    let (mut buf, mut spans) = (Vec::new(), Vec::new());
    for word in words {
        spans.push(Span { at: buf.len() as u32, len: word.len() as u32 });
        buf.extend_from_slice(word);
    }
    f(Args::new(&buf, &spans, (0, KeyHash::of(b""))))
}

/// Places in Sicily, and some at the edges of the map.
const PLACES: &str = "13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12.758489 38.788135 edge1 \
     17.241510 38.788135 edge2 13.583333 37.316667 Agrigento 180 1 east -180 1 west 179.9 85.05112878 top \
     -73.935242 40.73061 ny 151.2093 -33.8688 sydney";

#[derive(Default)]
pub(super) struct Server {
    pub sets: BTreeMap<Vec<u8>, Set>,
}

impl Server {
    /// With the index `g` of [`PLACES`].
    pub(super) fn with_places() -> Server {
        let mut server = Server::default();
        assert_eq!(server.line(&format!("geoadd g {PLACES}")), ":10\r\n");
        server
    }

    /// Runs lines one after the other and compares the replies, whose line ends are written as bars.
    #[track_caller]
    pub(super) fn check(&mut self, cases: &[(&str, &str)]) {
        for (line, want) in cases {
            assert_eq!(self.line(line).replace("\r\n", "|"), *want, "{line}");
        }
    }

    fn set(&self, key: &[u8]) -> Option<&dyn Places> {
        self.sets.get(key).map(|set| set as &dyn Places)
    }

    /// The reply to a command of this family, or to `zadd key score member`.
    pub(super) fn run(&mut self, words: &[&[u8]], protocol: Protocol) -> Vec<u8> {
        let mut out = Out::new(protocol);
        let done = with_args(words, |mut args| self.dispatch(&mut args, &mut out));
        if let Err(error) = done {
            out.error(&error);
        }
        out.buf
    }

    /// The reply of RESP2 to words between blanks, as text.
    fn line(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        String::from_utf8(self.run(&words, Protocol::Resp2)).unwrap()
    }

    fn dispatch(&mut self, args: &mut Args<'_>, out: &mut Out) -> Result<(), Error> {
        let form = match args.get(0).to_ascii_lowercase().as_slice() {
            b"georadius" => Form::Radius,
            b"georadius_ro" => Form::RadiusRo,
            b"georadiusbymember" => Form::ByMember,
            b"georadiusbymember_ro" => Form::ByMemberRo,
            b"geosearch" => Form::Search,
            b"geosearchstore" => Form::SearchStore,
            other => return self.dispatch_plain(other, args, out),
        };
        let set = self.set(args.get(form.source_index()));
        let query = query::parse(form, args, set)?;
        if query.target.is_some() {
            self.store(form, args.clone(), &query, out);
        } else {
            search::reply(set, &query, out);
        }
        Ok(())
    }

    fn dispatch_plain(&mut self, name: &[u8], args: &mut Args<'_>, out: &mut Out) -> Result<(), Error> {
        let key = args.get(1);
        match name {
            b"zadd" => {
                let score = crate::base::num::parse_f64(args.get(2)).unwrap();
                self.sets.entry(key.to_vec()).or_default().put(score, args.get(3));
                out.count(1);
            }
            b"geoadd" => {
                let addition = add::parse(args)?;
                let set = self.sets.entry(key.to_vec()).or_default();
                out.count(set.add(&addition));
                self.sets.retain(|_, set| !set.0.is_empty());
            }
            b"geodist" => {
                let unit = geodist_unit(args)?;
                geodist(self.set(key), args, unit, out);
            }
            b"geopos" => geopos(self.set(key), args, out),
            b"geohash" => geohash(self.set(key), args, out),
            _ => panic!("no command of the family"),
        }
        Ok(())
    }

    fn store(&mut self, form: Form, args: Args<'_>, query: &Query<'_>, out: &mut Out) {
        let hits = search::search(self.set(args.get(form.source_index())), query);
        let mut result = Set::default();
        for (member, score) in hits.scored(query) {
            result.put(score, member);
        }
        out.count(result.0.len());
        let key = query.target.unwrap().key.bytes;
        self.sets.remove(key);
        if !result.0.is_empty() {
            self.sets.insert(key.to_vec(), result);
        }
    }
}
