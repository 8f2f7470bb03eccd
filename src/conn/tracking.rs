//! CLIENT TRACKING and its relatives: a connection keeps what it reads and hears when that changes.
//!
//! Must stay true: the registry (`host::tracking`) and the connection's own state change together; a command that is
//! refused changes neither.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::num;
use crate::cmd::cx::ConnCx;
use crate::cmd::spec::{Done, Group::Connection as C, Spec, flag};
use crate::cmd::tracking::{Mode, Tracking};
use crate::host::tracking::Tracker;
use crate::host::{ClientInfo, Host, mark};
use crate::wire::{Args, Error, Out};

/// CLIENT CACHING
pub(super) const CACHING: Spec = Spec::conn("client|caching", "YES|NO", caching)
    .doc(C, "6.0.0", "Says whether the keys of the next command are tracked.")
    .with(flag::NOSCRIPT);
/// CLIENT GETREDIR
pub(super) const GETREDIR: Spec = Spec::conn("client|getredir", "", getredir)
    .doc(C, "6.0.0", "Tells which connection gets the tracking messages of this one.")
    .with(flag::NOSCRIPT);
/// CLIENT TRACKING
pub(super) const TRACKING: Spec = Spec::conn(
    "client|tracking",
    "ON|OFF [REDIRECT client-id:integer] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
    tracking,
)
.doc(C, "6.0.0", "Starts or stops telling this connection when keys that it has read change.")
.cost("O(1). Some options take more.")
.with(flag::NOSCRIPT);
/// CLIENT TRACKINGINFO
pub(super) const TRACKINGINFO: Spec = Spec::conn("client|trackinginfo", "", trackinginfo)
    .doc(C, "6.2.0", "Tells what this connection tracks, and how.")
    .with(flag::NOSCRIPT);

/// Options of CLIENT TRACKING.
#[derive(Debug, Default)]
struct Options<'a> {
    redirect: Option<Arc<ClientInfo>>,
    prefixes: Vec<&'a [u8]>,
    broadcasts: bool,
    opt_in: bool,
    opt_out: bool,
    skips_own: bool,
}

impl<'a> Options<'a> {
    fn read(args: &mut Args<'a>, host: &Host) -> Result<Options<'a>, Error> {
        let mut options = Options::default();
        while !args.is_done() {
            if args.left() > 1 && args.keyword("REDIRECT") {
                options.set_redirect(args.bytes()?, host)?;
            } else if args.keyword("BCAST") {
                options.broadcasts = true;
            } else if args.keyword("OPTIN") {
                options.opt_in = true;
            } else if args.keyword("OPTOUT") {
                options.opt_out = true;
            } else if args.keyword("NOLOOP") {
                options.skips_own = true;
            } else if args.left() > 1 && args.keyword("PREFIX") {
                options.prefixes.push(args.bytes()?);
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }

    fn set_redirect(&mut self, id: &[u8], host: &Host) -> Done {
        if self.redirect.is_some() {
            return Err(Error::err("A client can only redirect to a single other client"));
        }
        let id = num::parse_i64(id).ok_or(Error::NotInteger)?;
        let other = u64::try_from(id).ok().and_then(|id| host.clients.get(id));
        self.redirect =
            Some(other.ok_or_else(|| Error::err("The client ID you want redirect to does not exist"))?);
        Ok(())
    }

    /// How they change what the connection has asked for so far, if they may.
    fn mode(&self, before: Option<&Tracking>) -> Result<Mode, Error> {
        if !self.broadcasts && !self.prefixes.is_empty() {
            return Err(Error::err("PREFIX option requires BCAST mode to be enabled"));
        }
        let before = before.map(|tracking| tracking.mode);
        if before.is_some_and(|mode| (mode == Mode::Broadcast) != self.broadcasts) {
            return Err(Error::err(
                "You can't switch BCAST mode on/off before disabling tracking for this client, and then \
                 re-enabling it with a different mode.",
            ));
        }
        if self.broadcasts && (self.opt_in || self.opt_out) {
            return Err(Error::err("OPTIN and OPTOUT are not compatible with BCAST"));
        }
        if self.opt_in && self.opt_out {
            return Err(Error::err("You can't specify both OPTIN mode and OPTOUT mode"));
        }
        if self.opt_in && before == Some(Mode::OptOut) || self.opt_out && before == Some(Mode::OptIn) {
            return Err(Error::err(
                "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then \
                 re-enabling it with a different mode.",
            ));
        }
        Ok(match (self.broadcasts, self.opt_in, self.opt_out) {
            (true, ..) => Mode::Broadcast,
            (_, true, _) => Mode::OptIn,
            (_, _, true) => Mode::OptOut,
            _ => Mode::All,
        })
    }
}

/// Whether two prefixes have keys in common.
fn overlap(a: &[u8], b: &[u8]) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// No key shall be told twice.
fn check_prefixes(wanted: &[&[u8]], before: &BTreeSet<Box<[u8]>>) -> Done {
    let refuse = |prefix: &[u8], which: &str, other: &[u8]| {
        Err(Error::err(format_args!(
            "Prefix '{}' overlaps with {which} prefix '{}'. Prefixes for a single client must not overlap.",
            String::from_utf8_lossy(prefix),
            String::from_utf8_lossy(other),
        )))
    };
    let mut all: Vec<&[u8]> = before.iter().map(|prefix| &**prefix).chain(wanted.iter().copied()).collect();
    all.sort_unstable();
    // Where any two overlap, two neighbours do.
    if !all.windows(2).any(|pair| overlap(pair[0], pair[1])) {
        return Ok(());
    }
    for (number, prefix) in wanted.iter().enumerate() {
        if let Some(other) = before.iter().find(|other| overlap(prefix, other)) {
            return refuse(prefix, "an existing", other);
        }
        if let Some(other) = wanted[number + 1..].iter().find(|other| overlap(prefix, other)) {
            return refuse(prefix, "another provided", other);
        }
    }
    Ok(())
}

fn tracking(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let word = args.bytes()?;
    let options = Options::read(args, cx.host)?;
    if word.eq_ignore_ascii_case(b"on") {
        start(cx, options)?;
    } else if word.eq_ignore_ascii_case(b"off") {
        cx.client.stop_tracking(cx.host);
    } else {
        return Err(Error::Syntax);
    }
    out.ok();
    Ok(())
}

fn start(cx: &mut ConnCx<'_>, options: Options<'_>) -> Done {
    let client = &mut *cx.client;
    let mode = options.mode(client.tracking.as_deref())?;
    let mut prefixes = options.prefixes;
    if let Some(tracking) = &client.tracking {
        check_prefixes(&prefixes, &tracking.prefixes)?;
    } else {
        check_prefixes(&prefixes, &BTreeSet::new())?;
    }
    if mode == Mode::Broadcast && prefixes.is_empty() {
        prefixes.push(b"");
    }
    let redirect_id = options.redirect.as_ref().map_or(0, |other| other.id as i64);
    let tracker = Tracker {
        info: client.info.clone(),
        address: client.caller.address,
        redirect: options.redirect,
        skips_own: options.skips_own,
        broadcasts: mode == Mode::Broadcast,
    };
    if cx.host.trackers.enter(tracker, prefixes.iter().copied()) {
        cx.host.renew_settings();
    }
    let tracking = client.tracking.get_or_insert_default();
    (tracking.mode, tracking.skips_own) = (mode, options.skips_own);
    tracking.prefixes.extend(prefixes.into_iter().map(Box::from));
    client.info.set(mark::TRACKING_BROKEN, false);
    client.info.redirect.store(redirect_id, Ordering::Relaxed);
    client.note_tracking();
    Ok(())
}

fn caching(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let Some(tracking) = &mut cx.client.tracking else {
        return Err(Error::err(
            "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode \
             enabled",
        ));
    };
    let (mode, refusal) = if args.keyword("YES") {
        (Mode::OptIn, "CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
    } else if args.keyword("NO") {
        (Mode::OptOut, "CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
    } else {
        return Err(Error::Syntax);
    };
    if tracking.mode != mode {
        return Err(Error::err(refusal));
    }
    tracking.is_given = true;
    cx.client.note_tracking();
    out.ok();
    Ok(())
}

fn getredir(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    out.int(cx.client.info.redirect.load(Ordering::Relaxed));
    Ok(())
}

fn trackinginfo(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let none = Tracking::default();
    let tracking = cx.client.tracking.as_deref();
    let is_on = tracking.is_some();
    let tracking = tracking.unwrap_or(&none);
    let is = |mode| is_on && tracking.mode == mode;
    let flags = [
        (true, if is_on { "on" } else { "off" }),
        (is(Mode::Broadcast), "bcast"),
        (is(Mode::OptIn), "optin"),
        (is(Mode::OptIn) && tracking.is_given, "caching-yes"),
        (is(Mode::OptOut), "optout"),
        (is(Mode::OptOut) && tracking.is_given, "caching-no"),
        (tracking.skips_own, "noloop"),
        (cx.client.info.has(mark::TRACKING_BROKEN), "broken_redirect"),
    ];
    out.map(3);
    out.bulk(b"flags");
    out.set(flags.iter().filter(|(is_set, _)| *is_set).count());
    for (_, flag) in flags.iter().filter(|(is_set, _)| *is_set) {
        out.bulk(flag.as_bytes());
    }
    out.bulk(b"redirect");
    out.int(cx.client.info.redirect.load(Ordering::Relaxed));
    out.bulk(b"prefixes");
    out.array(tracking.prefixes.len());
    tracking.prefixes.iter().for_each(|prefix| out.bulk(prefix));
    Ok(())
}
