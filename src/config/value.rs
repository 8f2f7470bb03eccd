//! Values of parameters: from text by a row's kind, back to the text CONFIG GET prints, and to lines of a file.
//!
//! Parsing what `Value::text` printed gives the value back (tested for every row). Refusals use Redis's words.
use super::row::{Kind, Param, Reason, Words};
use super::words::{quote, quote_if_needed};
use crate::base::num::{parse_i64, parse_memory};

/// One rule of `save`: snapshot when so many changes happened and so many seconds passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveRule {
    /// Seconds since the last snapshot, at least 1.
    pub seconds: i64,
    /// Changes since the last snapshot.
    pub changes: i64,
}

/// When a client with unread replies is cut off; 0 stands for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    /// Bytes that cut a client off at once.
    pub hard_bytes: u64,
    /// Bytes that cut a client off after `soft_seconds`.
    pub soft_bytes: u64,
    /// Seconds a client may stay above `soft_bytes`.
    pub soft_seconds: i64,
}

/// The value of `maxmemory-clients`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBound {
    /// So many bytes; 0 stands for no limit.
    Bytes(u64),
    /// So many hundredths of `maxmemory`.
    Percent(u8),
}

/// Classes of clients in the order of their output limits.
pub const CLIENT_CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

/// Most addresses `bind` takes.
const ADDRESSES_MAX: usize = 16;

/// Letters of the event classes, in the order CONFIG GET prints them. `A` stands for all but the last.
const EVENT_CLASSES: &[u8] = b"g$lshzxetdn";
/// Letters that are printed behind the classes, in the order CONFIG GET prints them.
const EVENT_EXTRAS: &[u8] = b"KEm";

/// The bit of an event class letter (see `notify-keyspace-events`), or 0 for a letter that is none.
pub const fn event_bit(letter: u8) -> i64 {
    let mut at = 0;
    while at < EVENT_CLASSES.len() {
        if EVENT_CLASSES[at] == letter {
            return 1 << at;
        }
        at += 1;
    }
    match letter {
        b'K' => 1 << 11,
        b'E' => 1 << 12,
        b'm' => 1 << 13,
        _ => 0,
    }
}

/// The bits that `A` stands for. Where it is printed, the class outside of it is not, though it may be in force.
const EVENTS_ALL: i64 = event_bit(b'n') - 1;

/// The parsed value of one parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Numbers, switches (0 or 1), choices (the word's number), event classes (bits).
    Int(i64),
    /// Bytes of memory.
    Memory(u64),
    /// Bytes of memory or a percentage.
    Bound(MemoryBound),
    /// Free text, any bytes.
    Text(Vec<u8>),
    /// Snapshot rules in the order given.
    Save(Vec<SaveRule>),
    /// Limits in the order of [`CLIENT_CLASSES`].
    OutputLimits([OutputLimit; 3]),
    /// Addresses to listen on.
    Addresses(Vec<Vec<u8>>),
    /// Adjustments for primary, replica and background work.
    OomScores([i64; 3]),
    /// Host and port of the primary.
    Primary(Option<(Vec<u8>, u16)>),
    /// Percentiles in the order given.
    Percentiles(Vec<f64>),
}

type Parsed = Result<Value, Reason>;

fn refuse<T>(reason: &'static str) -> Result<T, Reason> {
    Err(Reason::Borrowed(reason))
}

impl Value {
    /// Reads a value from the words after a parameter's name. `old` is the value before, which matters to kinds
    /// that can be set in part. Errors in Redis's words.
    pub fn parse(param: &Param, args: &[&[u8]], old: Option<&Value>) -> Parsed {
        let value = match param.kind {
            Kind::Choices(words) => parse_choices(words, args),
            Kind::Save => parse_save(args),
            Kind::OutputLimits => parse_limits(args, old),
            Kind::Addresses => parse_addresses(args),
            Kind::OomScores => parse_oom_scores(args),
            Kind::Primary => parse_primary(args),
            Kind::Percentiles => parse_percentiles(args),
            _ => match args {
                [arg] => parse_single(param.kind, arg),
                _ => refuse("wrong number of arguments"),
            },
        }?;
        match param.settle {
            Some(settle) => settle(value),
            None => Ok(value),
        }
    }

    /// The text CONFIG GET prints.
    pub fn text(&self, kind: Kind) -> Vec<u8> {
        match self {
            Value::Int(number) => int_text(*number, kind).into_bytes(),
            Value::Memory(bytes) | Value::Bound(MemoryBound::Bytes(bytes)) => bytes.to_string().into_bytes(),
            Value::Bound(MemoryBound::Percent(percent)) => format!("{percent}%").into_bytes(),
            Value::Text(text) => text.clone(),
            Value::Save(rules) => join(rules.iter().map(|rule| format!("{} {}", rule.seconds, rule.changes))),
            Value::OutputLimits(limits) => join(CLIENT_CLASSES.iter().zip(limits).map(|(class, limit)| {
                format!("{class} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
            })),
            Value::Addresses(addresses) => addresses.join(&b' '),
            Value::OomScores(scores) => join(scores.iter().map(i64::to_string)),
            Value::Primary(None) => Vec::new(),
            Value::Primary(Some((host, port))) => [host, format!(" {port}").as_bytes()].concat(),
            Value::Percentiles(list) => join(list.iter().map(|percentile| percentile_text(*percentile))),
        }
    }

    /// The lines CONFIG REWRITE writes for this value, each with whether it must be there: a line that equals
    /// the default is only worth keeping where the file already has one. No lines at all for an unset text.
    pub fn lines(&self, param: &Param, default: &Value) -> Vec<(Vec<u8>, bool)> {
        let forced = self != default;
        let line = |text: &[u8], forced: bool| ([param.name.as_bytes(), b" ", text].concat(), forced);
        match self {
            Value::Text(text) if text.is_empty() && matches!(param.kind, Kind::Text { optional: true }) => {
                Vec::new()
            }
            Value::Primary(None) => Vec::new(),
            Value::Text(text) => vec![line(&quote(text), forced)],
            Value::Memory(bytes) | Value::Bound(MemoryBound::Bytes(bytes)) => {
                vec![line(memory_text(*bytes).as_bytes(), forced)]
            }
            Value::Int(_) if matches!(param.kind, Kind::Events) => {
                vec![line(&quote(&self.text(param.kind)), forced)]
            }
            // The first `save` line of a file drops the default rules, so all the rules must be there or none.
            Value::Save(rules) if !rules.is_empty() => rules
                .iter()
                .map(|rule| line(format!("{} {}", rule.seconds, rule.changes).as_bytes(), true))
                .collect(),
            // All classes or none: with only some of them in the file, the next rewrite would shift the lines.
            Value::OutputLimits(limits) => {
                let texts = limits.iter().enumerate().map(|(class, limit)| limit_text(class, limit));
                texts.map(|text| line(text.as_bytes(), forced)).collect()
            }
            Value::Primary(Some((host, port))) => {
                vec![line(&[&quote_if_needed(host)[..], format!(" {port}").as_bytes()].concat(), forced)]
            }
            Value::Addresses(addresses) if !addresses.is_empty() => {
                let words: Vec<_> = addresses.iter().map(|address| quote_if_needed(address)).collect();
                vec![line(&words.join(&b' '), forced)]
            }
            _ => {
                let text = self.text(param.kind);
                vec![line(if text.is_empty() { b"\"\"" } else { &text }, forced)]
            }
        }
    }
}

fn join(parts: impl Iterator<Item = String>) -> Vec<u8> {
    parts.collect::<Vec<_>>().join(" ").into_bytes()
}

fn parse_single(kind: Kind, arg: &[u8]) -> Parsed {
    match kind {
        Kind::Bool => parse_bool(arg),
        Kind::Int { min, max } => match parse_i64(arg) {
            Some(number) => within(number, min, max),
            None => refuse("argument couldn't be parsed into an integer"),
        },
        Kind::Octal { max } => match c_integer(arg, 8) {
            Some(number) if (0..=max).contains(&number) => Ok(Value::Int(number)),
            Some(_) => Err(format!("argument must be between 0 and {max:o} inclusive").into()),
            None => refuse("argument couldn't be parsed as an octal number"),
        },
        Kind::Memory { min, max } => match parse_memory(arg) {
            Some(bytes) if (min..=max).contains(&bytes) => Ok(Value::Memory(bytes)),
            Some(_) => Err(format!("argument must be between {min} and {max} inclusive").into()),
            None => refuse("argument must be a memory value"),
        },
        Kind::MemoryOrPercent => parse_bound(arg),
        Kind::Choice(words) => parse_choices(words, &[arg]),
        Kind::Events => parse_events(arg),
        _ => Ok(Value::Text(arg.to_vec())),
    }
}

fn parse_bool(arg: &[u8]) -> Parsed {
    if arg.eq_ignore_ascii_case(b"yes") {
        Ok(Value::Int(1))
    } else if arg.eq_ignore_ascii_case(b"no") {
        Ok(Value::Int(0))
    } else {
        refuse("argument must be 'yes' or 'no'")
    }
}

fn within(number: i64, min: i64, max: i64) -> Parsed {
    if (min..=max).contains(&number) {
        Ok(Value::Int(number))
    } else {
        Err(format!("argument must be between {min} and {max} inclusive").into())
    }
}

fn parse_bound(arg: &[u8]) -> Parsed {
    if let Some(bytes) = parse_memory(arg) {
        if bytes > i64::MAX as u64 {
            return refuse("percentage argument must be less or equal to 100");
        }
        return Ok(Value::Bound(MemoryBound::Bytes(bytes)));
    }
    match arg.strip_suffix(b"%").and_then(parse_i64) {
        // No percentage is no limit, and prints as such.
        Some(0) => Ok(Value::Bound(MemoryBound::Bytes(0))),
        Some(percent @ 1..=100) => Ok(Value::Bound(MemoryBound::Percent(percent as u8))),
        Some(101..) => refuse("percentage argument must be less or equal to 100"),
        _ => refuse("argument must be a memory or percent value"),
    }
}

fn parse_choices(words: Words, args: &[&[u8]]) -> Parsed {
    let number_of = |arg: &&[u8]| {
        words.iter().find(|(word, _)| arg.eq_ignore_ascii_case(word.as_bytes())).map(|(_, n)| *n)
    };
    let bits = args.iter().map(number_of).try_fold(0, |bits, number| number.map(|number| bits | number));
    match bits {
        Some(bits) if !args.is_empty() => Ok(Value::Int(bits)),
        _ => {
            let allowed = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            Err(format!("argument(s) must be one of the following: {allowed}").into())
        }
    }
}

fn parse_events(arg: &[u8]) -> Parsed {
    let mut bits = 0;
    for letter in arg {
        match (letter, event_bit(*letter)) {
            (b'A', _) => bits |= EVENTS_ALL,
            (_, 0) => return refuse("Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
            (_, bit) => bits |= bit,
        }
    }
    Ok(Value::Int(bits))
}

/// Whether the words are a single empty one, which empties a list.
fn is_empty_word(args: &[&[u8]]) -> bool {
    matches!(args, [arg] if arg.is_empty())
}

fn parse_save(args: &[&[u8]]) -> Parsed {
    const INVALID: &str = "Invalid save parameters";
    if is_empty_word(args) {
        return Ok(Value::Save(Vec::new()));
    }
    let (pairs, rest) = args.as_chunks::<2>();
    if !rest.is_empty() {
        return refuse(INVALID);
    }
    let mut rules = Vec::with_capacity(pairs.len());
    for [seconds, changes] in pairs {
        match (c_integer(seconds, 10), c_integer(changes, 10)) {
            (Some(seconds @ 1..), Some(changes @ 0..)) => rules.push(SaveRule { seconds, changes }),
            _ => return refuse(INVALID),
        }
    }
    Ok(Value::Save(rules))
}

fn parse_limits(args: &[&[u8]], old: Option<&Value>) -> Parsed {
    let mut limits = match old {
        Some(Value::OutputLimits(limits)) => *limits,
        _ => [OutputLimit { hard_bytes: 0, soft_bytes: 0, soft_seconds: 0 }; 3],
    };
    let (quads, rest) = args.as_chunks::<4>();
    if !rest.is_empty() {
        return refuse("Wrong number of arguments in buffer limit configuration.");
    }
    for [class, hard, soft, seconds] in quads {
        let Some(class) = client_class(class) else {
            return refuse("Invalid client class specified in buffer limit configuration.");
        };
        match (parse_memory(hard), parse_memory(soft), c_integer(seconds, 10)) {
            (Some(hard_bytes), Some(soft_bytes), Some(soft_seconds @ 0..)) => {
                limits[class] = OutputLimit { hard_bytes, soft_bytes, soft_seconds };
            }
            _ => {
                return refuse("Error in hard, soft or soft_seconds setting in buffer limit configuration.");
            }
        }
    }
    Ok(Value::OutputLimits(limits))
}

fn client_class(name: &[u8]) -> Option<usize> {
    if name.eq_ignore_ascii_case(b"replica") {
        return Some(1);
    }
    CLIENT_CLASSES.iter().position(|class| name.eq_ignore_ascii_case(class.as_bytes()))
}

fn parse_addresses(args: &[&[u8]]) -> Parsed {
    if args.len() > ADDRESSES_MAX {
        return refuse("Too many bind addresses specified.");
    }
    if is_empty_word(args) {
        return Ok(Value::Addresses(Vec::new()));
    }
    Ok(Value::Addresses(args.iter().map(|arg| arg.to_vec()).collect()))
}

fn parse_oom_scores(args: &[&[u8]]) -> Parsed {
    let [primary, replica, background] = args else { return refuse("wrong number of arguments") };
    let mut scores = [0; 3];
    for (score, arg) in scores.iter_mut().zip([primary, replica, background]) {
        match c_integer(arg, 10) {
            Some(number @ -2000..=2000) => *score = number,
            _ => return refuse("Invalid oom-score-adj-values, elements must be between -2000 and 2000."),
        }
    }
    Ok(Value::OomScores(scores))
}

fn parse_primary(args: &[&[u8]]) -> Parsed {
    match args {
        [[]] => Ok(Value::Primary(None)),
        [no, one] if no.eq_ignore_ascii_case(b"no") && one.eq_ignore_ascii_case(b"one") => {
            Ok(Value::Primary(None))
        }
        [host, port] => match c_integer(port, 10).map(u16::try_from) {
            Some(Ok(port)) => Ok(Value::Primary(Some((host.to_vec(), port)))),
            _ => refuse("Invalid master port"),
        },
        _ => refuse("wrong number of arguments"),
    }
}

fn parse_percentiles(args: &[&[u8]]) -> Parsed {
    if is_empty_word(args) {
        return Ok(Value::Percentiles(Vec::new()));
    }
    let mut list = Vec::with_capacity(args.len());
    for arg in args {
        let parsed = std::str::from_utf8(arg).ok().and_then(|text| text.parse::<f64>().ok());
        match parsed {
            Some(percentile) if (0.0..=100.0).contains(&percentile) => list.push(percentile),
            Some(percentile) if !percentile.is_nan() => {
                return refuse("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
            }
            _ => return refuse("Invalid latency-tracking-info-percentiles parameters"),
        }
    }
    Ok(Value::Percentiles(list))
}

/// An integer as C's `strtoll` reads one: blanks and a sign may lead, no digits at all are 0, too many saturate.
/// None when anything else follows.
fn c_integer(text: &[u8], radix: u32) -> Option<i64> {
    let digits = text.trim_ascii_start();
    let (negative, digits) = match digits {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() && !text.is_empty() {
        return None;
    }
    let mut number: i64 = 0;
    for byte in digits {
        let digit = i64::from((*byte as char).to_digit(radix)?);
        let digit = if negative { -digit } else { digit };
        number = number.saturating_mul(i64::from(radix)).saturating_add(digit);
    }
    Some(number)
}

fn int_text(number: i64, kind: Kind) -> String {
    match kind {
        Kind::Bool => if number == 0 { "no" } else { "yes" }.to_string(),
        Kind::Octal { .. } => format!("{number:o}"),
        Kind::Choice(words) => word_of(words, number).to_string(),
        Kind::Choices(words) => choices_text(words, number),
        Kind::Events => events_text(number),
        _ => number.to_string(),
    }
}

/// The first word of a number; every stored number has one, since only words are parsed.
pub(super) fn word_of(words: Words, number: i64) -> &'static str {
    words.iter().find(|(_, of)| *of == number).map_or("unknown", |(word, _)| word)
}

fn choices_text(words: Words, bits: i64) -> String {
    if words.iter().any(|(_, of)| *of == bits) {
        return word_of(words, bits).to_string();
    }
    let set = words.iter().filter(|(_, of)| *of != 0 && bits & of == *of);
    set.map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
}

fn events_text(bits: i64) -> String {
    let mut text = String::new();
    if bits & EVENTS_ALL == EVENTS_ALL {
        text.push('A');
    } else {
        let set = EVENT_CLASSES.iter().filter(|letter| bits & event_bit(**letter) != 0);
        text.extend(set.map(|letter| *letter as char));
    }
    let set = EVENT_EXTRAS.iter().filter(|letter| bits & event_bit(**letter) != 0);
    text.extend(set.map(|letter| *letter as char));
    text
}

/// At most six decimals, without the zeros at their end.
fn percentile_text(percentile: f64) -> String {
    let text = format!("{percentile:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Bytes with the greatest unit that divides them.
pub(super) fn memory_text(bytes: u64) -> String {
    for (shift, unit) in [(30, "gb"), (20, "mb"), (10, "kb")] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// The words of one client class, for a file.
fn limit_text(class: usize, limit: &OutputLimit) -> String {
    let name = if class == 1 { "replica" } else { CLIENT_CLASSES[class] };
    let (hard, soft) = (memory_text(limit.hard_bytes), memory_text(limit.soft_bytes));
    format!("{name} {hard} {soft} {}", limit.soft_seconds)
}

#[cfg(test)]
mod tests {
    use super::super::params::{P, PARAMS};
    use super::*;

    /// Parses words for a parameter and prints the value, or the refusal after a `!`.
    fn check(id: P, words: &str, expect: &str) {
        let param = &PARAMS[id as usize];
        let args: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let got = match Value::parse(param, &args, None) {
            Ok(value) => String::from_utf8(value.text(param.kind)).unwrap(),
            Err(reason) => format!("!{reason}"),
        };
        assert_eq!(got, expect, "{} {words}", param.name);
    }

    #[test]
    fn numbers_and_words() {
        check(P::PORT, "x", "!argument couldn't be parsed into an integer");
        check(P::PORT, "70000", "!argument must be between 0 and 65535 inclusive");
        check(P::PORT, "1 2", "!wrong number of arguments");
        check(P::UNIXSOCKETPERM, "700", "700");
        check(P::UNIXSOCKETPERM, "999", "!argument couldn't be parsed as an octal number");
        check(P::UNIXSOCKETPERM, "1000", "!argument must be between 0 and 777 inclusive");
        check(P::MAXMEMORY, "1mb", "1048576");
        check(P::MAXMEMORY, "-1", "!argument must be a memory value");
        check(P::MAXMEMORY, "18446744073709551615", "18446744073709551615");
        check(
            P::PROTO_MAX_BULK_LEN,
            "1",
            "!argument must be between 1048576 and 9223372036854775807 inclusive",
        );
        check(P::APPENDONLY, "YES", "yes");
        check(P::APPENDONLY, "1", "!argument must be 'yes' or 'no'");
        check(P::OOM_SCORE_ADJ, "relative", "yes");
        check(P::IO_DRIVER, "x", "!argument(s) must be one of the following: auto, uring, epoll");
        check(P::HZ, "5000", "500");
    }

    #[test]
    fn client_memory_bounds() {
        check(P::MAXMEMORY_CLIENTS, "5%", "5%");
        check(P::MAXMEMORY_CLIENTS, "0%", "0");
        check(P::MAXMEMORY_CLIENTS, "2kb", "2048");
        check(P::MAXMEMORY_CLIENTS, "101%", "!percentage argument must be less or equal to 100");
        check(P::MAXMEMORY_CLIENTS, "x", "!argument must be a memory or percent value");
        check(P::MAXMEMORY_CLIENTS, "-5%", "!argument must be a memory or percent value");
    }

    #[test]
    fn event_classes_print_in_one_order() {
        check(P::NOTIFY_KEYSPACE_EVENTS, "KEAx", "AKE");
        check(P::NOTIFY_KEYSPACE_EVENTS, "Kxnm", "xnKm");
        check(P::NOTIFY_KEYSPACE_EVENTS, "g$lshzxetd", "A");
        check(P::NOTIFY_KEYSPACE_EVENTS, "An", "A");
        check(P::NOTIFY_KEYSPACE_EVENTS, "g$lshzxetn", "g$lshzxetn");
        check(P::NOTIFY_KEYSPACE_EVENTS, "Q", "!Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
    }

    #[test]
    fn lists_of_words() {
        check(P::SAVE, "", "");
        check(P::SAVE, "3600 1 +5 007", "3600 1 5 7");
        check(P::SAVE, "0 1", "!Invalid save parameters");
        check(P::SAVE, "1", "!Invalid save parameters");
        check(P::SHUTDOWN_ON_SIGTERM, "force SAVE now", "save now force");
        check(P::BIND, "", "");
        check(P::BIND, "* -::1", "* -::1");
        check(P::BIND, "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7", "!Too many bind addresses specified.");
        check(P::OOM_SCORE_ADJ_VALUES, "1 2", "!wrong number of arguments");
        check(P::REPLICAOF, "h 1", "h 1");
        check(P::REPLICAOF, "no one", "");
        check(P::REPLICAOF, "h 65536", "!Invalid master port");
        check(P::LATENCY_TRACKING_INFO_PERCENTILES, "50.0 99.90 1e1", "50 99.9 10");
        check(
            P::LATENCY_TRACKING_INFO_PERCENTILES,
            "nan",
            "!Invalid latency-tracking-info-percentiles parameters",
        );
    }

    #[test]
    fn output_limits_change_class_by_class() {
        let param = &PARAMS[P::CLIENT_OUTPUT_BUFFER_LIMIT as usize];
        let old = Value::parse(param, &[b"replica", b"1kb", b"2", b"3"], None).unwrap();
        let new = Value::parse(param, &[b"PUBSUB", b"4", b"5", b"6"], Some(&old)).unwrap();
        assert_eq!(new.text(param.kind), b"normal 0 0 0 slave 1024 2 3 pubsub 4 5 6");
        check(
            P::CLIENT_OUTPUT_BUFFER_LIMIT,
            "a",
            "!Wrong number of arguments in buffer limit configuration.",
        );
        check(
            P::CLIENT_OUTPUT_BUFFER_LIMIT,
            "master 0 0 0",
            "!Invalid client class specified in buffer limit configuration.",
        );
    }

    #[test]
    fn memory_takes_the_greatest_unit() {
        assert_eq!(memory_text(0), "0");
        assert_eq!(memory_text(1 << 30), "1gb");
        assert_eq!(memory_text(3 << 19), "1536kb");
        assert_eq!(memory_text(1025), "1025");
    }

    #[test]
    fn c_integers() {
        assert_eq!(c_integer(b"", 10), Some(0));
        assert_eq!(c_integer(b" -12", 10), Some(-12));
        assert_eq!(c_integer(b"99999999999999999999", 10), Some(i64::MAX));
        assert_eq!(c_integer(b"1x", 10), None);
        assert_eq!(c_integer(b"-", 10), None);
    }
}
