//! CONFIG: the settings in force, read, changed and written back to their file.
use crate::cmd::cx::ConnCx;
use crate::cmd::docs;
use crate::cmd::spec::{Done, Group::Server as S, Spec, flag};
use crate::config::{Caller, P, Settings, absent_feature, flags, rewrite};
use crate::host::Listen;
use crate::persist::background::is_saving;
use crate::rt::log::{Level, line};
use crate::wire::{Args, Error, Out};

const ADMIN: u32 = flag::ADMIN | flag::NOSCRIPT;
const OF_PARAMETERS: &str = "O(N) where N is the number of parameters.";
const EVERYWHERE: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

/// The rows.
pub const COMMANDS: &[Spec] =
    &[Spec::container("config", SUBCOMMANDS).doc(S, "2.0.0", "Holds the commands about the configuration.")];

const SUBCOMMANDS: &[Spec] = &[
    Spec::conn("config|get", "parameter [parameter ...]", get)
        .doc(S, "2.0.0", "Returns the values of parameters whose names match.")
        .cost(OF_PARAMETERS)
        .with(ADMIN),
    Spec::conn("config|help", "", help).doc(S, "5.0.0", "Tells what each subcommand does."),
    Spec::conn("config|resetstat", "", resetstat)
        .doc(S, "2.0.0", "Sets the counters of INFO back to zero.")
        .with(ADMIN)
        .tips(EVERYWHERE),
    Spec::conn("config|rewrite", "", rewrite_file)
        .doc(S, "2.8.0", "Writes the settings in force to the configuration file.")
        .with(ADMIN)
        .tips(EVERYWHERE),
    Spec::conn("config|set", "parameter value [parameter value ...]", set)
        .doc(S, "2.0.0", "Changes parameters, all of them or none.")
        .cost(OF_PARAMETERS)
        .with(ADMIN)
        .tips(EVERYWHERE)
        .secrets(is_secret),
];

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("config", out);
    Ok(())
}

fn get(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let patterns: Vec<&[u8]> = args.rest().collect();
    let found = cx.host.settings().matching(&patterns);
    out.map(found.len());
    for (name, value) in found {
        out.bulk(&name);
        // The directory is told as it is, not as it was set.
        match std::env::current_dir() {
            Ok(dir) if P::find(&name).is_some_and(|(id, _)| id == P::DIR) => {
                out.bulk(dir.as_os_str().as_encoded_bytes());
            }
            _ => out.bulk(&value),
        }
    }
    Ok(())
}

/// Whether an argument of CONFIG SET is the value of a secret.
fn is_secret(args: &Args<'_>, at: usize) -> bool {
    let is_value = at >= 3 && at % 2 == 1;
    is_value && P::find(args.get(at - 1)).is_some_and(|(id, _)| id.row().has(flags::SENSITIVE))
}

fn set(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    if !args.left().is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    let words: Vec<&[u8]> = args.rest().collect();
    let pairs: Vec<(&[u8], &[u8])> = words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let caller = Caller { local: cx.client.caller.local, loading: false };
    cx.host.change_settings(|old| {
        let next = old.apply_many(&pairs, caller).map_err(|error| Error::line(error.to_string()))?;
        apply(cx.host.listen.get(), old, &next)?;
        let rewrites = &cx.host.rewrites;
        match (old.bool(P::APPENDONLY), next.bool(P::APPENDONLY)) {
            (false, true) => rewrites.lock().ask_first(is_saving(&cx.host.persistence)),
            (true, false) => rewrites.lock().withdraw(),
            _ => {}
        }
        Ok(next)
    })?;
    out.ok();
    Ok(())
}

/// Does what has to happen outside of the settings, or says why it cannot.
fn apply(listen: Option<&Listen>, old: &Settings, next: &Settings) -> Done {
    if let Some(id) = absent_feature(next) {
        return Err(refused(id, "not available in this version of Perigee"));
    }
    let changed = old.differences(next);
    if changed.contains(&P::DIR)
        && let Err(error) = std::env::set_current_dir(next.path(P::DIR))
    {
        return Err(refused(P::DIR, &reason(&error)));
    }
    move_to(listen, old, next, &changed).inspect_err(|_| {
        // It was there a moment ago.
        let _ = std::env::set_current_dir(old.path(P::DIR));
    })
}

/// Listens at other addresses if they have changed.
fn move_to(listen: Option<&Listen>, old: &Settings, next: &Settings, changed: &[P]) -> Done {
    const REASONS: [(P, &str); 2] = [
        (P::PORT, "Unable to listen on this port. Check server logs."),
        (P::BIND, "Failed to bind to specified addresses."),
    ];
    let Some((id, why)) = REASONS.into_iter().find(|(id, _)| changed.contains(id)) else { return Ok(()) };
    let moved = match listen {
        Some(listen) => listen(old, next),
        None => Err("This server listens nowhere.".to_string()),
    };
    moved.map_err(|error| {
        line(Level::Warning, &error);
        refused(id, why)
    })
}

fn refused(id: P, reason: &str) -> Error {
    let name = id.row().name;
    Error::err(format_args!("CONFIG SET failed (possibly related to argument '{name}') - {reason}"))
}

/// An error of the system without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

fn resetstat(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    for shard in &cx.host.counters {
        shard.reset();
    }
    cx.host.lazy_free.reset();
    out.ok();
    Ok(())
}

fn rewrite_file(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let Some(path) = &cx.host.config_file else {
        return Err(Error::err("The server is running without a config file"));
    };
    rewrite::rewrite(path, &cx.host.settings(), None)
        .map_err(|error| Error::err(format_args!("Rewriting config file: {}", reason(&error))))?;
    out.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(pairs: &[(&str, &str)]) -> Result<(), String> {
        let old = Settings::default();
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        let next = old.apply_many(&pairs, Caller::default()).map_err(|error| error.to_string())?;
        apply(None, &old, &next).map_err(|error| error.to_string())
    }

    #[test]
    fn absent_features_are_refused() {
        let refusal = |name: &str| {
            let why = "not available in this version of Perigee";
            Err(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
        };
        assert_eq!(outcome(&[("timeout", "5"), ("tls-port", "1")]), refusal("tls-port"));
        let nowhere = Err("ERR CONFIG SET failed (possibly related to argument 'port') - \
                           Unable to listen on this port. Check server logs."
            .to_string());
        assert_eq!(outcome(&[("port", "7000")]), nowhere);
        assert_eq!(
            outcome(&[("appendonly", "no"), ("save", ""), ("maxmemory-policy", "allkeys-lru")]),
            Ok(())
        );
    }

    #[test]
    fn errors_of_the_system_lose_their_number() {
        assert_eq!(reason(&std::io::Error::from_raw_os_error(13)), "Permission denied");
        assert_eq!(reason(&std::io::Error::other("odd")), "odd");
    }
}
