//! Channels: SUBSCRIBE and its relatives, PUBLISH, PUBSUB. Floor 6.
//!
//! Who is subscribed to what is in `host::hub`; how a message reaches a connection, in `shard::local`.
//! Must stay true: a command that changes what its client is subscribed to answers with one push for each subject, which
//! no message of that subject overtakes.
use crate::cmd::cx::ConnCx;
use crate::cmd::docs;
use crate::cmd::spec::{Done, Group::PubSub as G, KeyPart, Spec, flag, not_keys};
use crate::host::hub::Kind;
use crate::wire::{Args, Out};
use crate::wire::{Error, error::subcommand_syntax};

const LISTENING: u32 = flag::PUBSUB | flag::NOSCRIPT | flag::SUBSCRIBERS | flag::PUSHES;
const PUBLISHING: u32 = flag::PUBSUB | flag::FAST | flag::MAY_REPLICATE | flag::NO_INTERCEPT;
const ALL_CHANNELS: &[KeyPart] = &[not_keys(1, -1)];
const ONE_CHANNEL: &[KeyPart] = &[not_keys(1, 1)];

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::conn("psubscribe", "pattern [pattern ...]", psubscribe)
        .doc(G, "2.0.0", "Listens to all channels that some patterns match.")
        .cost("O(N) where N is the number of patterns.")
        .with(LISTENING),
    Spec::conn("publish", "channel message", publish)
        .doc(G, "2.0.0", "Sends a message to all who listen to a channel.")
        .cost("O(N+M) where N is the number of the channel's subscribers and M the number of all patterns.")
        .with(PUBLISHING),
    Spec::container("pubsub", SUBCOMMANDS).doc(G, "2.8.0", "Holds the commands that look at channels."),
    Spec::conn("punsubscribe", "[pattern [pattern ...]]", punsubscribe)
        .doc(G, "2.0.0", "Stops listening to the channels of some patterns, or of all.")
        .cost("O(N) where N is the number of patterns.")
        .with(LISTENING),
    Spec::conn("spublish", "shardchannel message", spublish)
        .doc(G, "7.0.0", "Sends a message to all who listen to a shard channel.")
        .cost("O(N) where N is the number of the channel's subscribers.")
        .with(PUBLISHING)
        .keys(ONE_CHANNEL),
    Spec::conn("ssubscribe", "shardchannel [shardchannel ...]", ssubscribe)
        .doc(G, "7.0.0", "Listens to some shard channels.")
        .cost("O(N) where N is the number of channels.")
        .with(LISTENING)
        .keys(ALL_CHANNELS),
    Spec::conn("subscribe", "channel [channel ...]", subscribe)
        .doc(G, "2.0.0", "Listens to some channels.")
        .cost("O(N) where N is the number of channels.")
        .with(LISTENING),
    Spec::conn("sunsubscribe", "[shardchannel [shardchannel ...]]", sunsubscribe)
        .doc(G, "7.0.0", "Stops listening to some shard channels, or to all.")
        .cost("O(N) where N is the number of channels.")
        .with(LISTENING)
        .keys(ALL_CHANNELS),
    Spec::conn("unsubscribe", "[channel [channel ...]]", unsubscribe)
        .doc(G, "2.0.0", "Stops listening to some channels, or to all.")
        .cost("O(N) where N is the number of channels.")
        .with(LISTENING),
];

const SUBCOMMANDS: &[Spec] = &[
    Spec::conn("pubsub|channels", "[pattern]", channels)
        .doc(G, "2.8.0", "Lists the channels that somebody listens to, or those that a pattern matches.")
        .cost("O(N) where N is the number of such channels.")
        .with(flag::PUBSUB),
    Spec::conn("pubsub|help", "", help).doc(G, "6.2.0", "Tells what each subcommand does."),
    Spec::conn("pubsub|numpat", "", numpat)
        .doc(G, "2.8.0", "Counts the different patterns that somebody listens to.")
        .with(flag::PUBSUB),
    Spec::conn("pubsub|numsub", "[channel [channel ...]]", numsub)
        .doc(G, "2.8.0", "Counts the subscribers of some channels, those of patterns left out.")
        .cost("O(N) where N is the number of channels.")
        .with(flag::PUBSUB),
    Spec::conn("pubsub|shardchannels", "[pattern]", shardchannels)
        .doc(
            G,
            "7.0.0",
            "Lists the shard channels that somebody listens to, or those that a pattern matches.",
        )
        .cost("O(N) where N is the number of such channels.")
        .with(flag::PUBSUB),
    Spec::conn("pubsub|shardnumsub", "[shardchannel [shardchannel ...]]", shardnumsub)
        .doc(G, "7.0.0", "Counts the subscribers of some shard channels.")
        .cost("O(N) where N is the number of channels.")
        .with(flag::PUBSUB),
];

fn subscribe(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    join(cx, args, out, Kind::Channel, b"subscribe")
}

fn psubscribe(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    join(cx, args, out, Kind::Pattern, b"psubscribe")
}

fn ssubscribe(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    if cx.client.caller.is_part {
        return Err(Error::err("SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    join(cx, args, out, Kind::ShardChannel, b"ssubscribe")
}

fn unsubscribe(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    leave(cx, args, out, Kind::Channel, b"unsubscribe")
}

fn punsubscribe(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    leave(cx, args, out, Kind::Pattern, b"punsubscribe")
}

fn sunsubscribe(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    leave(cx, args, out, Kind::ShardChannel, b"sunsubscribe")
}

/// Subscribes the client to the subjects that the arguments name.
fn join(cx: &mut ConnCx<'_>, args: &Args<'_>, out: &mut Out, kind: Kind, word: &[u8]) -> Done {
    for name in args.rest() {
        let address = cx.client.caller.address;
        cx.host.hub.subscribe(&mut cx.client.subscriptions, kind, name, address);
        confirm(cx, out, kind, word, Some(name));
    }
    cx.client.note_subscriptions();
    Ok(())
}

/// Takes back the subscriptions that the arguments name, or all of the kind.
fn leave(cx: &mut ConnCx<'_>, args: &Args<'_>, out: &mut Out, kind: Kind, word: &[u8]) -> Done {
    if args.is_done() {
        let names = cx.client.subscriptions.names(kind);
        names.iter().for_each(|name| leave_one(cx, out, kind, word, name));
        if names.is_empty() {
            confirm(cx, out, kind, word, None);
        }
    } else {
        args.rest().for_each(|name| leave_one(cx, out, kind, word, name));
    }
    cx.client.note_subscriptions();
    Ok(())
}

fn leave_one(cx: &mut ConnCx<'_>, out: &mut Out, kind: Kind, word: &[u8], name: &[u8]) {
    let address = cx.client.caller.address;
    cx.host.hub.unsubscribe(&mut cx.client.subscriptions, kind, name, address);
    confirm(cx, out, kind, word, Some(name));
}

/// Tells what became of a subscription, and how many are left: channels and patterns together, shard channels apart.
fn confirm(cx: &ConnCx<'_>, out: &mut Out, kind: Kind, word: &[u8], name: Option<&[u8]>) {
    let subscriptions = &cx.client.subscriptions;
    out.push(3);
    out.bulk(word);
    match name {
        Some(name) => out.bulk(name),
        None => out.null(),
    }
    out.count(match kind {
        Kind::ShardChannel => subscriptions.count(kind),
        _ => subscriptions.count(Kind::Channel) + subscriptions.count(Kind::Pattern),
    });
}

fn publish(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (channel, message) = (args.bytes()?, args.bytes()?);
    out.count(cx.host.hub.publish(channel, message, &mut cx.client.mail));
    Ok(())
}

fn spublish(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (channel, message) = (args.bytes()?, args.bytes()?);
    out.count(cx.host.hub.publish_to_shard(channel, message, &mut cx.client.mail));
    Ok(())
}

fn channels(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    list(cx, args, out, Kind::Channel)
}

fn shardchannels(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    list(cx, args, out, Kind::ShardChannel)
}

fn list(cx: &ConnCx<'_>, args: &mut Args<'_>, out: &mut Out, kind: Kind) -> Done {
    let names = cx.host.hub.names(kind, args.take());
    if !args.is_done() {
        return Err(subcommand_syntax(args.get(1), "PUBSUB"));
    }
    out.array(names.len());
    for name in names {
        out.bulk(&name);
    }
    Ok(())
}

fn numsub(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    count(cx, args, out, Kind::Channel)
}

fn shardnumsub(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    count(cx, args, out, Kind::ShardChannel)
}

fn count(cx: &ConnCx<'_>, args: &Args<'_>, out: &mut Out, kind: Kind) -> Done {
    out.array(2 * args.left());
    for name in args.rest() {
        out.bulk(name);
        out.count(cx.host.hub.subscribers(kind, name));
    }
    Ok(())
}

fn numpat(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    out.count(cx.host.hub.subjects(Kind::Pattern));
    Ok(())
}

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("pubsub", out);
    Ok(())
}
