//! What is pending: XACK, XPENDING, XCLAIM, XAUTOCLAIM.
use super::id::{Ids, parse, parse_all, parse_end, parse_start};
use super::record::Records;
use super::{CREATECONSUMER, int_or, no_group, reply_entry, reply_id};
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::spec::Done;
use crate::ds::stream::{ConsumerId, Delivery, Group, Log, Stream, StreamId};
use crate::types::stream;
use crate::wire::{Args, Error, Out};

/// XACK key group id [id ...]
pub fn xack(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, name) = (args.key()?, args.bytes()?);
    let acknowledged = cx.edit(key, |editor| {
        let group = stream::edit(editor)?.and_then(|stream| stream.groups.get_mut(name));
        let Some(group) = group else { return Ok(0) };
        let ids = parse_all(args)?;
        let acknowledged = ids.iter().filter(|id| group.acknowledge(**id)).count();
        editor.changed_beside(acknowledged);
        Ok(acknowledged)
    })?;
    out.count(acknowledged);
    Ok(())
}

/// What XPENDING looks for besides the summary.
struct Search<'a> {
    min_idle_ms: i64,
    start: StreamId,
    end: StreamId,
    max: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> Search<'a> {
    fn of(args: &mut Args<'a>) -> Result<Search<'a>, Error> {
        let mut min_idle_ms = 0;
        if args.keyword("IDLE") {
            min_idle_ms = args.int()?;
        }
        if args.left() < 3 {
            return Err(Error::Syntax);
        }
        let (start, end) = (args.bytes()?, args.bytes()?);
        let max = usize::try_from(args.int()?).unwrap_or(0);
        let (start, end) = (parse_start(start)?, parse_end(end)?);
        // More arguments are let pass.
        Ok(Search { min_idle_ms, start, end, max, consumer: args.take() })
    }
}

/// XPENDING key group [[IDLE min-idle-time] start end count [consumer]]
pub fn xpending(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    /// Arguments of a search, the name included.
    const SEARCH: std::ops::RangeInclusive<usize> = 6..=9;
    let (key, name) = (args.key()?, args.bytes()?);
    let search = match args.count() {
        3 => None,
        count if SEARCH.contains(&count) => Some(Search::of(args)?),
        _ => return Err(Error::Syntax),
    };
    let stream = cx.find(key).map(stream::of).transpose()?;
    let group =
        stream.and_then(|stream| stream.groups.get(name)).ok_or_else(|| no_group(key.bytes, name, ""))?;
    match search {
        None => summary(group, out),
        Some(search) => pending(group, &search, cx.now.ms as i64, out),
    }
    Ok(())
}

fn summary(group: &Group, out: &mut Out) {
    out.array(4);
    let pending = group.pending();
    out.count(pending.len());
    let (Some((first, _)), Some((last, _))) = (pending.first_key_value(), pending.last_key_value()) else {
        out.null();
        out.null();
        out.null_array();
        return;
    };
    reply_id(out, *first);
    reply_id(out, *last);
    let (mark, mut count) = (out.mark(), 0);
    for consumer in group.consumers().filter(|consumer| !consumer.pending().is_empty()) {
        out.array(2);
        out.bulk(consumer.name());
        out.bulk_int(consumer.pending().len() as i64);
        count += 1;
    }
    out.insert_at(mark, |out| out.array(count));
}

fn pending(group: &Group, search: &Search<'_>, now_ms: i64, out: &mut Out) {
    let (mark, mut count) = (out.mark(), 0);
    let is_idle = |delivery: &Delivery| {
        search.min_idle_ms == 0 || now_ms.saturating_sub(delivery.time_ms) >= search.min_idle_ms
    };
    let mut visit = |id: StreamId, delivery: &Delivery| {
        if count < search.max && is_idle(delivery) {
            count += 1;
            out.array(4);
            reply_id(out, id);
            out.bulk(group.consumer(delivery.consumer).name());
            out.int(now_ms.saturating_sub(delivery.time_ms).max(0));
            out.int(delivery.count as i64);
        }
        count < search.max
    };
    if search.max > 0 && search.start <= search.end {
        match search.consumer {
            None => {
                let range = group.pending().range(search.start..=search.end);
                range.take_while(|(id, delivery)| visit(**id, delivery)).for_each(drop);
            }
            Some(name) => {
                if let Some(consumer) = group.find(name) {
                    let range = group.consumer(consumer).pending().range(search.start..=search.end);
                    range.take_while(|id| visit(**id, &group.pending()[*id])).for_each(drop);
                }
            }
        }
    }
    out.insert_at(mark, |out| out.array(count));
}

/// What XCLAIM is told.
struct Claim<'a> {
    consumer: &'a [u8],
    min_idle_ms: i64,
    ids: Ids,
    /// When the entries count as delivered.
    time_ms: Option<i64>,
    retry_count: Option<u64>,
    force: bool,
    just_id: bool,
    last_id: StreamId,
}

impl<'a> Claim<'a> {
    fn of(args: &mut Args<'a>, now_ms: i64) -> Result<Claim<'a>, Error> {
        let consumer = args.bytes()?;
        let min_idle_ms = int_or(args, "Invalid min-idle-time argument for XCLAIM")?.max(0);
        let ids: Ids = args.rest().map_while(|arg| parse(arg, 0).ok()).collect();
        args.seek(args.position() + ids.len());
        let mut claim = Claim {
            consumer,
            min_idle_ms,
            ids,
            time_ms: None,
            retry_count: None,
            force: false,
            just_id: false,
            last_id: StreamId::MIN,
        };
        while !args.is_done() {
            claim.option(args, now_ms)?;
        }
        Ok(claim)
    }

    fn option(&mut self, args: &mut Args<'_>, now_ms: i64) -> Done {
        let more = args.left() > 1;
        if args.keyword("FORCE") {
            self.force = true;
        } else if args.keyword("JUSTID") {
            self.just_id = true;
        } else if more && args.keyword("IDLE") {
            let idle_ms = int_or(args, "Invalid IDLE option argument for XCLAIM")?;
            self.time_ms = Some(now_ms.wrapping_sub(idle_ms));
        } else if more && args.keyword("TIME") {
            self.time_ms = Some(int_or(args, "Invalid TIME option argument for XCLAIM")?);
        } else if more && args.keyword("RETRYCOUNT") {
            let count = int_or(args, "Invalid RETRYCOUNT option argument for XCLAIM")?;
            self.retry_count = u64::try_from(count).ok();
        } else if more && args.keyword("LASTID") {
            self.last_id = parse(args.bytes()?, 0)?;
        } else {
            let option = String::from_utf8_lossy(args.bytes()?);
            return Err(Error::err(format_args!("Unrecognized XCLAIM option '{option}'")));
        }
        Ok(())
    }

    /// Claims one entry. `None`: it stays as it is.
    fn entry(&self, group: &mut Group, consumer: ConsumerId, id: StreamId, now_ms: i64) -> Option<()> {
        let old = group.pending().get(&id).copied();
        let count = match old {
            Some(old) if self.min_idle_ms > 0 && now_ms.saturating_sub(old.time_ms) < self.min_idle_ms => {
                return None;
            }
            Some(old) => old.count,
            // One that is made by force counts as delivered once already.
            None if self.force => 1,
            None => return None,
        };
        let count = self.retry_count.unwrap_or(count.wrapping_add(u64::from(!self.just_id)));
        // A time that cannot be is the client's arithmetic, and no reason to fail.
        let time_ms = self.time_ms.filter(|time| (0..=now_ms).contains(time)).unwrap_or(now_ms);
        group.assign(id, Delivery { consumer, time_ms, count });
        group.consumer_mut(consumer).active_ms = Some(now_ms);
        Some(())
    }
}

/// Writes a claimed entry, or its id alone.
fn reply_claimed(out: &mut Out, log: &Log, id: StreamId, just_id: bool) {
    match log.get(id) {
        Some(entry) if !just_id => reply_entry(out, &entry),
        _ => reply_id(out, id),
    }
}

/// XCLAIM key group consumer min-idle-time id [id ...] [options]
pub fn xclaim(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, name) = (args.key()?, args.bytes()?);
    let now_ms = cx.now.ms as i64;
    let mut records = Records::new(cx);
    let consumer = cx.edit(key, |editor| {
        let stream = stream::edit(editor)?;
        let Some((log, group)) = log_and_group(stream, name) else {
            return Err(no_group(key.bytes, name, ""));
        };
        let claim = Claim::of(args, now_ms)?;
        let moved = claim.last_id > group.last_id;
        group.last_id = group.last_id.max(claim.last_id);
        let (consumer, made) = group.find_or_add(claim.consumer, now_ms);
        let (mark, mut claimed, mut gone) = (out.mark(), 0, 0);
        for id in &claim.ids {
            if log.get(*id).is_none() {
                records.delivery(group, *id);
                gone += usize::from(group.acknowledge(*id));
            } else if claim.entry(group, consumer, *id, now_ms).is_some() {
                claimed += 1;
                records.delivery(group, *id);
                reply_claimed(out, log, *id, claim.just_id);
            }
        }
        out.insert_at(mark, |out| out.array(claimed));
        let moved_only = moved && claimed + gone == 0;
        if moved_only {
            records.moved();
        }
        records.end(group);
        if made {
            editor.stands_for(&[CREATECONSUMER]);
        }
        editor.changed_beside(claimed + gone + usize::from(made) + usize::from(moved_only));
        Ok(claim.consumer)
    })?;
    records.log(cx, key.bytes, name, consumer);
    Ok(())
}

fn log_and_group<'a>(stream: Option<&'a mut Stream>, name: &[u8]) -> Option<(&'a Log, &'a mut Group)> {
    let Stream { log, groups } = stream?;
    Some((log, groups.get_mut(name)?))
}

/// What XAUTOCLAIM is told.
struct Sweep<'a> {
    consumer: &'a [u8],
    min_idle_ms: i64,
    start: StreamId,
    max: u64,
    just_id: bool,
}

/// Entries that XAUTOCLAIM claims, unless COUNT says otherwise,
const SWEEP_MAX: u64 = 100;
/// and at how many it looks for each of them.
const LOOKS_PER_CLAIM: u64 = 10;
/// The highest COUNT.
const SWEEP_COUNT_MAX: i64 = i64::MAX / 16;

impl<'a> Sweep<'a> {
    fn of(args: &mut Args<'a>) -> Result<Sweep<'a>, Error> {
        let consumer = args.bytes()?;
        let min_idle_ms = int_or(args, "Invalid min-idle-time argument for XAUTOCLAIM")?.max(0);
        let start = parse_start(args.bytes()?)?;
        let mut sweep = Sweep { consumer, min_idle_ms, start, max: SWEEP_MAX, just_id: false };
        while !args.is_done() {
            if args.left() > 1 && args.keyword("COUNT") {
                const REFUSAL: &str = "COUNT must be > 0";
                let count = int_or(args, REFUSAL)?;
                if !(1..=SWEEP_COUNT_MAX).contains(&count) {
                    return Err(Error::err(REFUSAL));
                }
                sweep.max = count.unsigned_abs();
            } else if args.keyword("JUSTID") {
                sweep.just_id = true;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(sweep)
    }

    /// Claims entries and writes them; returns where to go on, how many were claimed, and which are gone from the log.
    fn run(
        &self,
        log: &Log,
        group: &mut Group,
        consumer: ConsumerId,
        now_ms: i64,
        records: &mut Records,
        out: &mut Out,
    ) -> (StreamId, usize, Ids) {
        let (mut claimed, mut gone) = (0, Ids::new());
        let (mut looks, mut next) = (self.max * LOOKS_PER_CLAIM, Some(self.start));
        while looks > 0 && (claimed + gone.len() as u64) < self.max {
            looks -= 1;
            let found = next.and_then(|next| group.pending_from(next).next());
            let Some((id, old)) = found.map(|(id, old)| (*id, *old)) else { break };
            next = id.next();
            if log.get(id).is_none() {
                records.delivery(group, id);
                group.acknowledge(id);
                gone.push(id);
            } else if self.min_idle_ms == 0 || now_ms.saturating_sub(old.time_ms) >= self.min_idle_ms {
                let count = old.count.wrapping_add(u64::from(!self.just_id));
                group.assign(id, Delivery { consumer, time_ms: now_ms, count });
                group.consumer_mut(consumer).active_ms = Some(now_ms);
                records.delivery(group, id);
                reply_claimed(out, log, id, self.just_id);
                claimed += 1;
            }
        }
        let cursor = next.and_then(|next| group.pending_from(next).next()).map(|(id, _)| *id);
        (cursor.unwrap_or_default(), claimed as usize, gone)
    }
}

/// XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]
pub fn xautoclaim(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, name) = (args.key()?, args.bytes()?);
    let sweep = Sweep::of(args)?;
    let now_ms = cx.now.ms as i64;
    let mut records = Records::new(cx);
    cx.edit(key, |editor| {
        let stream = stream::edit(editor)?;
        let Some((log, group)) = log_and_group(stream, name) else {
            return Err(no_group(key.bytes, name, ""));
        };
        let (consumer, made) = group.find_or_add(sweep.consumer, now_ms);
        let mark = out.mark();
        let (cursor, claimed, gone) = sweep.run(log, group, consumer, now_ms, &mut records, out);
        records.end(group);
        out.insert_at(mark, |out| {
            out.array(3);
            reply_id(out, cursor);
            out.array(claimed);
        });
        out.array(gone.len());
        gone.iter().for_each(|id| reply_id(out, *id));
        if made {
            editor.stands_for(&[CREATECONSUMER]);
        }
        editor.changed_beside(claimed + gone.len() + usize::from(made));
        Ok(())
    })?;
    records.log(cx, key.bytes, name, sweep.consumer);
    Ok(())
}
