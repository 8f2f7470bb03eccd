//! How requests are read: fragments, pipelines, both forms, limits, and what is no protocol.
use std::fmt::Write as _;

use super::support::{Client, Server, command, show};
use super::{SHARDS, check, on_all_shards};

/// A pipeline with everything that parsing must get right, and its replies.
fn pipeline() -> (Vec<u8>, Vec<u8>) {
    let mut requests = Vec::new();
    let mut replies = Vec::new();
    let long = "x".repeat(300);
    let steps: [(&[&str], String); 8] = [
        (&["SET", "a", "1\r\n$3"], "+OK\r\n".into()),
        (&["GET", "a"], "$5\r\n1\r\n$3\r\n".into()),
        (&["SET", "", ""], "+OK\r\n".into()),
        (&["GET", ""], "$0\r\n\r\n".into()),
        (&["SET", "long", &long], "+OK\r\n".into()),
        (&["MGET", "long", "a", "none"], format!("*3\r\n$300\r\n{long}\r\n$5\r\n1\r\n$3\r\n$-1\r\n")),
        (&["GET"], "-ERR wrong number of arguments for 'get' command\r\n".into()),
        (&["INCR", "n"], ":1\r\n".into()),
    ];
    for (words, reply) in &steps {
        requests.extend(command(words));
        replies.extend_from_slice(reply.as_bytes());
    }
    requests.extend_from_slice(b"*0\r\n*-1\r\n\r\nGET n\r\n");
    replies.extend_from_slice(b"$1\r\n1\r\n");
    requests.extend_from_slice(b"SET q \"a \\x41\"\nGET 'q'\r\nDEL n\r\n");
    replies.extend_from_slice(b"+OK\r\n$3\r\na A\r\n:1\r\n");
    (requests, replies)
}

#[track_caller]
fn expect(client: &mut Client, want: &[u8]) {
    let got = client.read_exact(want.len());
    assert!(got == want, "\n got: {}\nwant: {}", show(&got), show(want));
}

#[test]
fn a_pipeline_may_be_cut_at_every_byte() {
    let (requests, replies) = pipeline();
    on_all_shards(|_, client| {
        for cut in 0..=requests.len() {
            client.send(&requests[..cut]);
            // The server most likely reads the two parts apart; if not, the whole is tried again.
            std::thread::yield_now();
            client.send(&requests[cut..]);
            expect(client, &replies);
        }
        for piece in requests.chunks(1) {
            client.send(piece);
        }
        expect(client, &replies);
        client.expect_silence();
    });
}

#[test]
fn a_client_may_send_20000_commands_before_it_reads() {
    on_all_shards(|_, client| {
        let mut requests = Vec::new();
        let mut replies = Vec::new();
        for i in 0..10_000 {
            requests.extend(command(&["SET", &format!("key:{}", i % 700), &i.to_string()]));
            replies.extend_from_slice(b"+OK\r\n");
            requests.extend(command(&["GET", &format!("key:{}", i % 700)]));
            replies.extend(format!("${}\r\n{i}\r\n", i.to_string().len()).bytes());
        }
        client.send(&requests);
        expect(client, &replies);
        client.expect_silence();
    });
}

#[test]
fn what_is_no_protocol_is_refused_after_what_came_before() {
    let cases: [(&str, &str); 11] = [
        ("*x\r\n", "invalid multibulk length"),
        ("*1000000000000\r\n", "invalid multibulk length"),
        ("*2147483648\r\n", "invalid multibulk length"),
        ("*2\r\n:3\r\n", "expected '$', got ':'"),
        ("*1\r\nGET\r\n", "expected '$', got 'G'"),
        ("*1\r\n$\r\n", "invalid bulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$3x\r\n", "invalid bulk length"),
        ("*1\r\n$536870913\r\n", "invalid bulk length"),
        ("*2\r\n$3\r\nGET\r\n$99999999999999999999\r\n", "invalid bulk length"),
        ("GET 'a\r\n", "unbalanced quotes in request"),
    ];
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        for (bad, reason) in cases {
            let mut client = server.client();
            let mut requests = b"SET a 1\r\nINCR b\r\nGET a\r\nINCR c\r\nINCR d\r\nDEL a b c d\r\n".to_vec();
            requests.extend_from_slice(bad.as_bytes());
            client.send(&requests);
            // What follows a violation is never executed.
            let _ = client.try_send(b"*1\r\n$4\r\nPING\r\n");
            let got = client.read_to_end();
            let want = format!("+OK\r\n:1\r\n$1\r\n1\r\n:1\r\n:1\r\n:4\r\n-ERR Protocol error: {reason}\r\n");
            assert!(got == want.as_bytes(), "{bad:?}\n got: {}\nwant: {want:?}", show(&got));
        }
    }
}

#[test]
fn endless_lines_are_refused() {
    let server = Server::start(1, &[]);
    let cases: [(&[u8], u8, &str); 3] = [
        (b"", b'a', "too big inline request"),
        (b"*", b'1', "too big mbulk count string"),
        (b"*1\r\n$", b'1', "too big bulk count string"),
    ];
    for (start, filler, reason) in cases {
        let mut client = server.client();
        client.send(start);
        let _ = client.try_send(vec![filler; 70_000]);
        let got = String::from_utf8(client.read_to_end()).unwrap();
        assert_eq!(got, format!("-ERR Protocol error: {reason}\r\n"));
    }
}

#[test]
fn inline_lines_quote_as_the_array_form_cannot() {
    on_all_shards(|_, client| {
        client.send(b"SET key \"a\\n\\r\\t\\b\\a\\\\\\\"\\x00\\xfFb\"\r\n");
        assert_eq!(client.read_bytes(), b"+OK\r\n");
        client.check("GET key", b"$11\r\na\n\r\t\x08\x07\\\"\0\xffb\r\n");
        client.send(b"  SET   key\t'it\\'s \\n'  \n");
        assert_eq!(client.read_bytes(), b"+OK\r\n");
        client.check("GET key", "$7\r\nit's \\n\r\n");
        client.send(b"SET key \"\"\r\nSTRLEN key\r\n   \r\n\r\n\n");
        assert_eq!(client.read_exact(9), b"+OK\r\n:0\r\n");
        client.expect_silence();
    });
}

#[test]
fn names_have_any_case_and_unknown_ones_are_quoted() {
    check("gEt a => $-1");
    on_all_shards(|_, client| {
        client.check(
            "nosuch a \"b c\"",
            "-ERR unknown command 'nosuch', with args beginning with: 'a' 'b c' \r\n",
        );
        client.check(
            "\"line\\r\\nbreak\"",
            "-ERR unknown command 'line  break', with args beginning with: \r\n",
        );
    });
}

#[test]
fn commands_may_have_100000_arguments() {
    const PAIRS: usize = 50_000;
    on_all_shards(|_, client| {
        let mut requests = format!("*{}\r\n$4\r\nMSET\r\n", 2 * PAIRS + 1);
        for i in 0..2 * PAIRS {
            let word = i.to_string();
            write!(requests, "${}\r\n{word}\r\n", word.len()).unwrap();
        }
        client.send(requests);
        assert_eq!(client.read_bytes(), b"+OK\r\n");
        client.check("GET 99998", "$5\r\n99999\r\n");
        let mut words = vec!["EXISTS".to_string()];
        words.extend((0..2 * PAIRS).map(|i| i.to_string()));
        assert_eq!(client.run_words(&words).int(), PAIRS as i64);
    });
}

#[test]
fn a_value_of_64_mib_comes_back() {
    let value: Vec<u8> = (0..64u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for shards in [1, 4] {
        let server = Server::start(shards, &[]);
        let mut client = server.client();
        // A few keys, so that some live on another shard.
        for key in ["a", "b"] {
            assert_eq!(client.run_words(&[b"SET", key.as_bytes(), &value]).text(), b"OK");
            assert!(client.run_words(&["GET", key]).text() == value, "{key} came back changed");
        }
    }
}

#[test]
fn the_bulk_limit_is_a_setting() {
    let server = Server::start(2, &["--proto-max-bulk-len", "1mb"]);
    let mut client = server.client();
    client.send(command(&[b"SET".to_vec(), b"a".to_vec(), vec![b'x'; 1 << 20]]));
    assert_eq!(client.read_bytes(), b"+OK\r\n");
    client.check("APPEND a y", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
    client.check("SETRANGE b 1048576 y", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
    client.send(b"*2\r\n$3\r\nGET\r\n$1048577\r\n");
    assert_eq!(client.read_to_end(), b"-ERR Protocol error: invalid bulk length\r\n");
}

#[test]
fn claims_of_the_wire_reserve_nothing() {
    const CONNECTIONS: usize = 200;
    let server = Server::start(2, &[]);
    let _ = server.client().run("GET a");
    let before_bytes = server.rss_bytes();
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = server.client();
        client.send(b"*1048576\r\n$3\r\nSET\r\n$536870912\r\nabc");
        clients.push(client);
    }
    // A later connection was served: the earlier bytes were most likely read; once more to be sure.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let _ = server.client().run("GET a");
    let grown_bytes = server.rss_bytes().saturating_sub(before_bytes);
    assert!(grown_bytes < 16 << 20, "{CONNECTIONS} claims took {grown_bytes} bytes");
}

#[test]
fn hello_speaks_both_protocols() {
    on_all_shards(|_, client| {
        client.check("GET none", "$-1\r\n");
        let hello = client.run("HELLO 3 SETNAME tester").items();
        assert!(hello.iter().any(|v| v.text() == b"proto"), "{hello:?}");
        client.check("GET none", "_\r\n");
        client.check("MGET none none", "*2\r\n_\r\n_\r\n");
        client.check("CLIENT GETNAME", "$6\r\ntester\r\n");
        client.check("HELLO 4", "-NOPROTO unsupported protocol version\r\n");
        client.check("HELLO x", "-ERR Protocol version is not an integer or out of range\r\n");
        client.check("GET none", "_\r\n");
        let _ = client.run("HELLO 2");
        client.check("GET none", "$-1\r\n");
        client.run("HELLO 3");
        client.check("RESET", "+RESET\r\n");
        client.check("GET none", "$-1\r\n");
    });
}
