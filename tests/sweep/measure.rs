//! Builds places on a server and measures what commands cost there.
//!
//! The cost of a command is the server's own time in it (`INFO commandstats`), so neither the network nor the
//! commands that prepare its round count; the cheapest of several batches, because a machine with other guests only
//! ever adds. The cost of filling a place is the processor time of the server, once.
use super::cases::{Case, Fill};
use super::support::{Client, Rng, Server, Value, show};
use super::template::{Place, push_command, push_filling};

/// Rounds of a batch, at most.
const ROUNDS_MAX: usize = 256;
/// Rounds of a batch, at least.
const ROUNDS_MIN: usize = 4;
/// Time that the rounds of one batch should take, short beside a turn of the scheduler.
const BATCH_NS: f64 = 400_000.0;
/// Batches of one measurement.
const BATCHES: usize = 9;
/// Bytes of commands that are under way together while a place is filled.
const FILLING_BYTES: usize = 256 * 1024;

/// The server does not know this command.
#[derive(Debug)]
pub struct Unknown(pub String);

/// A server with a connection.
pub struct Bench {
    server: Server,
    client: Client,
    rng: Rng,
}

/// What one batch showed.
struct Batch {
    ns_per_call: f64,
    empty: usize,
}

fn is_empty(reply: &Value) -> bool {
    match reply {
        Value::Null | Value::Int(0) => true,
        Value::Bulk(bytes) => bytes.is_empty(),
        Value::Array(items) | Value::Set(items) => items.is_empty() || items.iter().all(is_empty),
        _ => false,
    }
}

fn command_name(template: &str) -> String {
    template.split_whitespace().next().unwrap_or_default().to_ascii_lowercase()
}

/// Calls and microseconds of a command in the text of `INFO commandstats`.
fn find_stats(info: &str, name: &str) -> Option<(usize, f64)> {
    let line = info.lines().find_map(|l| l.trim_end().strip_prefix(&format!("cmdstat_{name}:")))?;
    let field = |name: &str| line.split(',').find_map(|f| f.strip_prefix(name)?.strip_prefix('='));
    Some((field("calls")?.parse().ok()?, field("usec")?.parse().ok()?))
}

impl Bench {
    /// Takes a server over.
    pub fn new(server: Server) -> Bench {
        let client = server.client();
        Bench { server, client, rng: Rng::new(1) }
    }

    /// Makes a place the one that commands work on.
    fn enter(&mut self, place: &Place) {
        let reply = self.client.run(&format!("SELECT {}", place.db));
        assert!(!reply.is_error(), "SELECT: {}", reply.string());
    }

    fn accept(template: &str, reply: &Value) -> Result<(), Unknown> {
        if let Value::Error(text) = reply {
            if text.starts_with(b"ERR unknown command") {
                return Err(Unknown(command_name(template).to_uppercase()));
            }
            panic!("{template}: {}", show(text));
        }
        Ok(())
    }

    /// Empties a place.
    pub fn clear(&mut self, place: &mut Place) {
        self.enter(place);
        let reply = self.client.run("FLUSHDB");
        assert!(!reply.is_error(), "FLUSHDB: {}", reply.string());
        place.rewind();
    }

    /// Does one step of filling a place: the processor time per element in nanoseconds.
    ///
    /// # Errors
    /// [`Unknown`]
    pub fn fill(&mut self, place: &mut Place, fill: &Fill) -> Result<f64, Unknown> {
        self.enter(place);
        let Some(each) = fill.each else {
            let mut bytes = Vec::new();
            push_command(fill.head, place, &mut self.rng, &mut bytes);
            self.client.send(bytes);
            Bench::accept(fill.head, &self.client.read())?;
            return Ok(0.0);
        };
        place.rewind();
        let before_ns = self.server.cpu_ns();
        let mut left = place.size;
        while left > 0 {
            let mut bytes = Vec::new();
            let mut commands = 0;
            while left > 0 && bytes.len() < FILLING_BYTES {
                let count = left.min(fill.per_command);
                push_filling(fill.head, each, count, place, &mut self.rng, &mut bytes);
                left -= count;
                commands += 1;
            }
            self.client.send(bytes);
            for _ in 0..commands {
                Bench::accept(fill.head, &self.client.read())?;
            }
        }
        Ok((self.server.cpu_ns() - before_ns) as f64 / place.size as f64)
    }

    fn push_round(&mut self, place: &mut Place, case: &Case, to: &mut Vec<u8>) {
        if case.makes_elements() {
            place.next += 1;
        }
        for line in case.lines() {
            push_command(line, place, &mut self.rng, to);
        }
    }

    /// Reads the replies of a round; the last one is the measured command's.
    fn read_round(&mut self, case: &Case) -> Result<Value, Unknown> {
        let mut refusal = None;
        let mut last = Value::Null;
        for line in case.lines() {
            last = self.client.read();
            refusal = refusal.or(Bench::accept(line, &last).err());
        }
        refusal.map_or(Ok(last), Err)
    }

    /// Runs some rounds of a case.
    fn batch(&mut self, place: &mut Place, case: &Case, rounds: usize) -> Result<Batch, Unknown> {
        let mut empty = 0;
        let mut refusal = None;
        // A scan needs each reply for the next step; everything else goes at once.
        let together = if case.is_scan() { 1 } else { rounds };
        self.client.run("CONFIG RESETSTAT");
        for _ in 0..rounds / together {
            let mut bytes = Vec::new();
            for _ in 0..together {
                self.push_round(place, case, &mut bytes);
            }
            self.client.send(bytes);
            for _ in 0..together {
                match self.read_round(case) {
                    Ok(reply) => {
                        empty += usize::from(is_empty(&reply));
                        if case.is_scan() {
                            place.cursor = reply.items()[0].string();
                        }
                    }
                    Err(unknown) => refusal = Some(unknown),
                }
            }
        }
        if let Some(unknown) = refusal {
            return Err(unknown);
        }
        let info = self.client.run("INFO commandstats").string();
        let stats = find_stats(&info, &command_name(case.measured));
        let (calls, us) = stats.unwrap_or_else(|| panic!("no statistics of {}:\n{info}", case.measured));
        assert_eq!(calls, rounds, "{}: every round calls the command once", case.measured);
        Ok(Batch { ns_per_call: us * 1e3 / rounds as f64, empty })
    }

    /// The cost of a case's command at a place, in nanoseconds.
    ///
    /// # Panics
    /// When the command refuses, or mostly finds nothing where the case expects that it finds something.
    ///
    /// # Errors
    /// [`Unknown`]
    pub fn cost_ns(&mut self, place: &mut Place, case: &Case) -> Result<f64, Unknown> {
        self.enter(place);
        place.cursor = "0".into();
        let first = self.batch(place, case, ROUNDS_MIN)?;
        let rounds = (BATCH_NS / first.ns_per_call.max(1.0)) as usize;
        let rounds = rounds.clamp(ROUNDS_MIN, ROUNDS_MAX);
        let mut lowest = f64::INFINITY;
        for _ in 0..BATCHES {
            let batch = self.batch(place, case, rounds)?;
            assert!(
                case.may_find_nothing || batch.empty <= rounds / 2,
                "{} at {}: {} of {rounds} replies are empty: it measures nothing",
                case.measured,
                place.size,
                batch.empty
            );
            lowest = lowest.min(batch.ns_per_call);
        }
        Ok(lowest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_found() {
        let info = "# Commandstats\r\ncmdstat_hgetall:calls=1,usec=9,usec_per_call=9.00\r\n\
                    cmdstat_hget:calls=4,usec=10,usec_per_call=2.50,rejected_calls=0,failed_calls=0\r\n";
        assert_eq!(find_stats(info, "hget"), Some((4, 10.0)));
        assert_eq!(find_stats(info, "hgetall"), Some((1, 9.0)));
        assert_eq!(find_stats(info, "hge"), None);
    }

    #[test]
    fn empty_replies_are_told() {
        let items = |v: &[Value]| Value::Array(v.to_vec());
        for reply in [Value::Null, Value::Int(0), Value::Bulk(vec![]), items(&[]), items(&[Value::Null])] {
            assert!(is_empty(&reply), "{reply:?}");
        }
        for reply in [Value::Int(1), Value::Bulk(b"0".to_vec()), items(&[Value::Null, Value::Int(2)])] {
            assert!(!is_empty(&reply), "{reply:?}");
        }
    }
}
