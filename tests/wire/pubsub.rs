//! Channels: who receives what and in which order, subscriber mode, limits of slow subscribers, keyspace events.
use std::time::{Duration, Instant};

use super::support::{Client, Server, Value, command};
use super::{check, on_all_shards};

/// Bytes of a push or, under RESP2, of an array of bulks; numbers stand for themselves.
fn message(head: char, words: &[&str]) -> Vec<u8> {
    let mut text = format!("{head}{}\r\n", words.len());
    for word in words {
        match word.parse::<i64>() {
            Ok(number) => text += &format!(":{number}\r\n"),
            Err(_) => text += &format!("${}\r\n{word}\r\n", word.len()),
        }
    }
    text.into_bytes()
}

#[track_caller]
fn expect(client: &mut Client, head: char, words: &[&str]) {
    let got = client.read_bytes();
    let want = message(head, words);
    assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&want));
}

/// Waits until the server says that so many clients are subscribed.
fn await_subscribers(client: &mut Client, count: usize) {
    let want = format!("pubsub_clients:{count}\r\n");
    let end = Instant::now() + Duration::from_secs(10);
    while !client.run("INFO clients").string().contains(&want) {
        assert!(Instant::now() < end, "{count} subscribers were expected");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn messages_reach_subscribers_of_all_shards() {
    on_all_shards(|server, client| {
        let mut old: Vec<Client> = (0..5).map(|_| server.client()).collect();
        let mut new: Vec<Client> = (0..5).map(|_| server.client()).collect();
        for client in &mut old {
            client.send_words(&["SUBSCRIBE", "news", "other"]);
            expect(client, '*', &["subscribe", "news", "1"]);
            expect(client, '*', &["subscribe", "other", "2"]);
        }
        for client in &mut new {
            client.run("HELLO 3");
            client.send_words(&["PSUBSCRIBE", "n?ws"]);
            expect(client, '>', &["psubscribe", "n?ws", "1"]);
        }
        client.check("PUBLISH news hello", ":10\r\n");
        client.check("PUBLISH other x", ":5\r\n");
        client.check("PUBLISH nobody x", ":0\r\n");
        for client in &mut old {
            expect(client, '*', &["message", "news", "hello"]);
            expect(client, '*', &["message", "other", "x"]);
            client.expect_silence();
        }
        for client in &mut new {
            expect(client, '>', &["pmessage", "n?ws", "news", "hello"]);
            client.expect_silence();
            // Not bound to anything under RESP3.
            client.check("SET a b", "+OK\r\n");
        }
        client.check("PUBSUB NUMSUB news none", "*4\r\n$4\r\nnews\r\n:5\r\n$4\r\nnone\r\n:0\r\n");
        client.check("PUBSUB NUMPAT", ":1\r\n");
        assert_eq!(client.run("PUBSUB CHANNELS").items().len(), 2);
        client.check("PUBSUB CHANNELS n*", "*1\r\n$4\r\nnews\r\n");
        let stats = client.run("INFO stats").string();
        assert!(stats.contains("pubsub_channels:2\r\npubsub_patterns:1\r\npubsubshard_channels:0\r\n"));
        assert_eq!(client.run("CLIENT LIST TYPE pubsub").string().lines().count(), 10);
        drop((old, new));
        await_subscribers(client, 0);
        client.check("PUBLISH news x", ":0\r\n");
        client.check("PUBSUB CHANNELS", "*0\r\n");
        client.check("PUBSUB NUMPAT", ":0\r\n");
    });
}

#[test]
fn replies_are_those_of_the_reference() {
    check(
        r#"
        UNSUBSCRIBE            => *3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0
        PUNSUBSCRIBE           => *3\r\n$12\r\npunsubscribe\r\n$-1\r\n:0
        SUNSUBSCRIBE           => *3\r\n$12\r\nsunsubscribe\r\n$-1\r\n:0
        UNSUBSCRIBE a          => *3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0
        SUBSCRIBE              => -ERR wrong number of arguments for 'subscribe' command
        PUBSUB NOSUCH          => -ERR unknown subcommand 'NOSUCH'. Try PUBSUB HELP.
        PUBSUB CHANNELS a b    => -ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.
        PUBSUB NUMSUB          => *0
        PUBSUB NUMPAT x        => -ERR wrong number of arguments for 'pubsub|numpat' command
        COMMAND GETKEYS SPUBLISH a b => -ERR The command has no key arguments
        SUBSCRIBE a            => *3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1
        SUBSCRIBE a            => *3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1
        PSUBSCRIBE a*          => *3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:2
        SSUBSCRIBE a           => *3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1
        PING                   => *2\r\n$4\r\npong\r\n$0\r\n
        PING x                 => *2\r\n$4\r\npong\r\n$1\r\nx
        GET                    => -ERR wrong number of arguments for 'get' command
        GET a                  => -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        CLIENT ID              => -ERR Can't execute 'client|id': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        HELLO 3                => -ERR Can't execute 'hello': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        UNSUBSCRIBE a          => *3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1
        PUNSUBSCRIBE           => *3\r\n$12\r\npunsubscribe\r\n$2\r\na*\r\n:0
        GET a                  => -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        SUNSUBSCRIBE a         => *3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0
        GET a                  => $-1
        SUBSCRIBE b            => *3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:1
        RESET                  => +RESET
        GET a                  => $-1
        PUBSUB CHANNELS        => *0
        "#,
    );
}

#[test]
fn the_protocol_may_change_under_a_subscription() {
    on_all_shards(|server, client| {
        let mut other = server.client();
        other.run("HELLO 3");
        other.check("SUBSCRIBE a", message('>', &["subscribe", "a", "1"]));
        other.check("UNSUBSCRIBE nosuch", message('>', &["unsubscribe", "nosuch", "1"]));
        client.check("PUBLISH a one", ":1\r\n");
        expect(&mut other, '>', &["message", "a", "one"]);
        other.run("HELLO 2");
        client.check("PUBLISH a two", ":1\r\n");
        expect(&mut other, '*', &["message", "a", "two"]);
        assert!(other.run("GET x").is_error());
        other.check("RESET", "+RESET\r\n");
        client.check("PUBLISH a three", ":0\r\n");
        other.check("GET x", "$-1\r\n");
        other.run("HELLO 3");
        other.check("PUNSUBSCRIBE", b">3\r\n$12\r\npunsubscribe\r\n_\r\n:0\r\n");
    });
}

#[test]
fn messages_to_oneself_follow_the_reply() {
    on_all_shards(|_, client| {
        client.run("HELLO 3");
        client.check("SUBSCRIBE a", message('>', &["subscribe", "a", "1"]));
        client.send(
            [
                command(&["PUBLISH", "a", "x"]),
                command(&["PING"]),
                command(&["PUBLISH", "a", "y"]),
                command(&["UNSUBSCRIBE", "a"]),
                command(&["PUBLISH", "a", "z"]),
            ]
            .concat(),
        );
        assert_eq!(client.read(), Value::Int(1));
        expect(client, '>', &["message", "a", "x"]);
        assert_eq!(client.read_bytes(), b"+PONG\r\n");
        assert_eq!(client.read(), Value::Int(1));
        expect(client, '>', &["message", "a", "y"]);
        expect(client, '>', &["unsubscribe", "a", "0"]);
        assert_eq!(client.read(), Value::Int(0));
        client.expect_silence();
    });
}

#[test]
fn transactions_publish_and_unsubscribe() {
    on_all_shards(|_, client| {
        client.run("HELLO 3");
        client.check("SUBSCRIBE a", message('>', &["subscribe", "a", "1"]));
        let call = |line: &str| command(&line.split(' ').collect::<Vec<_>>());
        let lines =
            ["MULTI", "SET k v", "PUBLISH a x", "UNSUBSCRIBE a", "SUBSCRIBE b", "GET k", "PUBLISH b y"];
        client.send(lines.map(call).concat());
        assert_eq!(client.read_bytes(), b"+OK\r\n");
        lines[1..].iter().for_each(|_| assert_eq!(client.read_bytes(), b"+QUEUED\r\n"));
        client.send([call("EXEC"), call("PING")].concat());
        let replies = [
            b"*6\r\n+OK\r\n:1\r\n".to_vec(),
            message('>', &["unsubscribe", "a", "0"]),
            message('>', &["subscribe", "b", "1"]),
            b"$1\r\nv\r\n:1\r\n".to_vec(),
            message('>', &["message", "a", "x"]),
            message('>', &["message", "b", "y"]),
            b"+PONG\r\n".to_vec(),
        ];
        let replies = replies.concat();
        let got = client.read_exact(replies.len());
        assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&replies));
        client.expect_silence();
    });
}

#[test]
fn client_reply_does_not_hold_pushes_back() {
    on_all_shards(|server, client| {
        let mut other = server.client();
        other.send(command(&["CLIENT", "REPLY", "OFF"]));
        other.send(command(&["SUBSCRIBE", "a"]));
        expect(&mut other, '*', &["subscribe", "a", "1"]);
        client.check("PUBLISH a x", ":1\r\n");
        expect(&mut other, '*', &["message", "a", "x"]);
        other.send(command(&["PING"]));
        other.expect_silence();
        other.send(command(&["UNSUBSCRIBE"]));
        expect(&mut other, '*', &["unsubscribe", "a", "0"]);
    });
}

/// Several publishers at once, each with numbered messages; whoever listens sees the numbers of each ascend, none left
/// out, and what was published before its own command comes before the reply.
#[test]
fn messages_of_a_publisher_keep_their_order() {
    const MESSAGES: usize = 2000;
    on_all_shards(|server, client| {
        let mut listeners: Vec<Client> = (0..3).map(|_| server.client()).collect();
        for (number, listener) in listeners.iter_mut().enumerate() {
            if number == 1 {
                listener.run("HELLO 3");
            }
            listener.run(if number == 2 { "PSUBSCRIBE n*" } else { "SUBSCRIBE news" });
        }
        let publishers: Vec<_> = (0..3)
            .map(|id: usize| {
                let mut publisher = server.client();
                std::thread::spawn(move || {
                    for batch in (0..MESSAGES).collect::<Vec<_>>().chunks(50) {
                        let words =
                            |n: &usize| command(&["PUBLISH".into(), "news".into(), format!("{id}:{n}")]);
                        publisher.send(batch.iter().map(words).collect::<Vec<_>>().concat());
                        for _ in batch {
                            assert_eq!(publisher.read(), Value::Int(3));
                        }
                    }
                })
            })
            .collect();
        for listener in &mut listeners {
            let mut next = [0; 3];
            for _ in 0..3 * MESSAGES {
                let text = listener.read().items().last().unwrap().string();
                let (id, number) = text.split_once(':').unwrap();
                let next = &mut next[id.parse::<usize>().unwrap()];
                assert_eq!(number.parse::<usize>().unwrap(), *next);
                *next += 1;
            }
        }
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
        for round in 0..200 {
            client.check(&format!("PUBLISH news {round}x"), ":3\r\n");
            let listener = &mut listeners[round % 2];
            listener.send(command(&["PING"]));
            assert_eq!(listener.read().items()[2].string(), format!("{round}x"));
            let pong = listener.read();
            assert!(pong == Value::Simple(b"PONG".to_vec()) || pong.items()[0].text() == b"pong", "{pong:?}");
            listeners[(round + 1) % 2].read();
        }
    });
}

/// A subscriber leaves and comes back while others publish: behind the confirmation that it left nothing comes.
#[test]
fn nothing_comes_behind_the_end_of_a_subscription() {
    on_all_shards(|server, _| {
        let mut listener = server.client();
        let publishers: Vec<_> = (0..3)
            .map(|_| {
                let mut publisher = server.client();
                std::thread::spawn(move || {
                    for _ in 0..200 {
                        publisher.send(command(&["PUBLISH", "a", "x"]).repeat(20));
                        (0..20).for_each(|_| assert!(publisher.read().int() <= 1));
                    }
                })
            })
            .collect();
        let mut heard = 0;
        for round in 0..300 {
            let reset = round % 3 == 0;
            listener.run("SUBSCRIBE a");
            listener.send(command(if reset { &["RESET"] } else { &["UNSUBSCRIBE"] }));
            loop {
                match listener.read() {
                    Value::Simple(_) => break,
                    reply if reply.items()[0].text() == b"unsubscribe" => break,
                    message => assert_eq!(message.items()[0].text(), b"message"),
                }
                heard += 1;
            }
            listener.check("ECHO x", "$1\r\nx\r\n");
        }
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
        listener.expect_silence();
        eprintln!("{heard} messages heard");
    });
}

/// Publishes to a subscriber that does not read until the server closes it; returns how many bytes it took.
fn publish_until_closed(server: &Server, client: &mut Client) -> usize {
    let mut slow = server.client();
    slow.run("SUBSCRIBE a");
    let text = "x".repeat(32 * 1024);
    let end = Instant::now() + Duration::from_secs(20);
    let mut bytes = 0;
    while client.run_words(&["PUBLISH", "a", &text]).int() == 1 {
        bytes += text.len();
        assert!(Instant::now() < end, "the subscriber is still there after {bytes} bytes");
    }
    assert!(slow.read_to_end().len() <= bytes);
    bytes
}

#[test]
fn slow_subscribers_are_closed() {
    on_all_shards(|server, client| {
        client.run("CONFIG SET client-output-buffer-limit \"pubsub 2mb 0 0\"");
        let bytes = publish_until_closed(server, client);
        // Beside the limit only the sockets' buffers.
        assert!((2 << 20..64 << 20).contains(&bytes), "{bytes}");
        let stats = client.run("INFO stats").string();
        assert!(stats.contains("client_output_buffer_limit_disconnections:1\r\n"));
        client.run("CONFIG SET client-output-buffer-limit \"pubsub 0 512kb 1\"");
        let mut slow = server.client();
        slow.run("SUBSCRIBE b");
        let start = Instant::now();
        let text = "x".repeat(1 << 20);
        for _ in 0..16 {
            client.run_words(&["PUBLISH", "b", &text]);
        }
        // Nothing is published any more: time alone closes it.
        await_subscribers(client, 0);
        assert!(start.elapsed() >= Duration::from_secs(1));
        drop(slow);
    });
}

#[test]
fn killed_subscribers_are_gone() {
    on_all_shards(|server, client| {
        let mut others: Vec<Client> = (0..4).map(|_| server.client()).collect();
        others.iter_mut().for_each(|other| drop(other.run("SUBSCRIBE a")));
        assert!(client.run("CLIENT LIST").string().contains(" flags=P db=0 sub=1 psub=0 ssub=0 "));
        client.check("CLIENT KILL TYPE pubsub", ":4\r\n");
        for other in &mut others {
            assert_eq!(other.read_to_end(), b"");
        }
        // Their shards see to it.
        let end = Instant::now() + Duration::from_secs(10);
        while client.run("PUBLISH a x").int() != 0 {
            assert!(Instant::now() < end, "they are still there");
        }
    });
}

#[test]
fn shard_channels_are_apart() {
    on_all_shards(|server, client| {
        let mut other = server.client();
        other.check("SSUBSCRIBE a", message('*', &["ssubscribe", "a", "1"]));
        client.check("PUBLISH a x", ":0\r\n");
        client.check("SPUBLISH a x", ":1\r\n");
        expect(&mut other, '*', &["smessage", "a", "x"]);
        client.check("PUBSUB SHARDNUMSUB a", "*2\r\n$1\r\na\r\n:1\r\n");
        client.check("PUBSUB SHARDCHANNELS", "*1\r\n$1\r\na\r\n");
        client.check("PUBSUB CHANNELS", "*0\r\n");
        other.check("UNSUBSCRIBE", b"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n");
        other.check("SUNSUBSCRIBE", message('*', &["sunsubscribe", "a", "0"]));
        client.check("SPUBLISH a x", ":0\r\n");
    });
}

#[test]
fn keys_tell_of_their_events() {
    on_all_shards(|server, client| {
        let mut listener = server.client();
        listener.run("PSUBSCRIBE __key*");
        client.run("SET early x");
        client.run("CONFIG SET notify-keyspace-events KEgx");
        client.check("CONFIG GET notify-keyspace-events", message('*', &["notify-keyspace-events", "gxKE"]));
        let mut hear = |event: &str, key: &str| {
            let keyspace = format!("__keyspace@0__:{key}");
            expect(&mut listener, '*', &["pmessage", "__key*", &keyspace, event]);
            let keyevent = format!("__keyevent@0__:{event}");
            expect(&mut listener, '*', &["pmessage", "__key*", &keyevent, key]);
        };
        for key in ["early", "a", "b", "c", "d"] {
            client.run(&format!("SET {key} x"));
            client.check(&format!("DEL {key}"), ":1\r\n");
            hear("del", key);
        }
        client.run("MSET e x f y");
        client.check("DEL e f", ":2\r\n");
        hear("del", "e");
        hear("del", "f");
        client.run("SET gone x");
        client.run("PEXPIRE gone 20");
        // By the active cycle, then by a read.
        hear("expire", "gone");
        hear("expired", "gone");
        client.run("DEBUG SET-ACTIVE-EXPIRE 0");
        client.run("SET gone x");
        client.run("PEXPIRE gone 20");
        hear("expire", "gone");
        std::thread::sleep(Duration::from_millis(40));
        client.check("GET gone", "$-1\r\n");
        hear("expired", "gone");
        client.run("CONFIG SET notify-keyspace-events \"\"");
        client.run("SET a b");
        client.run("DEL a");
        listener.expect_silence();
    });
}

#[test]
fn reads_that_miss_tell_of_it() {
    on_all_shards(|server, client| {
        let mut listener = server.client();
        listener.run("SUBSCRIBE __keyevent@0__:keymiss");
        client.run("CONFIG SET notify-keyspace-events Em");
        client.run("SET a x");
        for key in ["b", "c", "d", "e"] {
            client.check("GET a", "$1\r\nx\r\n");
            client.check(&format!("GET {key}"), "$-1\r\n");
            expect(&mut listener, '*', &["message", "__keyevent@0__:keymiss", key]);
        }
        client.run("MGET a f a g");
        expect(&mut listener, '*', &["message", "__keyevent@0__:keymiss", "f"]);
        expect(&mut listener, '*', &["message", "__keyevent@0__:keymiss", "g"]);
        client.run("GETEX h");
        expect(&mut listener, '*', &["message", "__keyevent@0__:keymiss", "h"]);
        client.run("EXISTS a i");
        expect(&mut listener, '*', &["message", "__keyevent@0__:keymiss", "i"]);
        client.run("SETNX j x");
        client.run("INCR k");
        let misses = client.run("INFO stats").string();
        assert!(misses.contains("keyspace_misses:8\r\n"), "{misses}");
        client.run("CONFIG SET notify-keyspace-events EA");
        client.run("GET nosuch");
        listener.expect_silence();
    });
}
