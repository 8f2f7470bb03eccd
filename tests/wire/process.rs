//! Start and end of the process: messages, exit codes, drivers.
use std::net::TcpListener;

use super::SHARDS;
use super::support::server::{free_port, fresh_dir, run_to_end};
use super::support::{Client, Server, command};

#[test]
fn sigterm_and_sigint_end_it_cleanly() {
    for (shards, signal) in [(1, "TERM"), (2, "INT"), (4, "TERM")] {
        let mut server = Server::start(shards, &[]);
        let mut clients: Vec<Client> = (0..20).map(|_| server.client()).collect();
        clients.iter_mut().for_each(|c| c.check("SET a 1", "+OK\r\n"));
        server.signal(signal);
        let status = server.wait_for_end();
        assert!(status.success(), "{status}:\n{}", server.log());
        assert!(server.wait_for_line("bye bye"), "{}", server.log());
        for client in &mut clients {
            // What is sent to a server that is gone meets the end of the connection, not a reset.
            let _ = client.try_send(b"PING\r\n");
            assert!(matches!(client.try_read_some(), Ok(0)));
        }
    }
}

#[test]
fn it_ends_under_load() {
    for shards in SHARDS {
        let mut server = Server::start(shards, &[]);
        let port = server.port;
        let load: Vec<_> = (0..4)
            .map(|i| {
                std::thread::spawn(move || {
                    let mut client = Client::connect(port);
                    let batch = command(&[
                        "MSET".to_string(),
                        format!("a{i}"),
                        "1".into(),
                        format!("b{i}"),
                        "2".into(),
                    ])
                    .repeat(50);
                    let mut rounds = 0;
                    while client.try_send(&batch).is_ok()
                        && (0..50).all(|_| matches!(client.try_read(), Ok(Some(_))))
                    {
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(50));
        server.signal("TERM");
        assert!(server.wait_for_end().success(), "{}", server.log());
        for thread in load {
            assert!(thread.join().unwrap() > 0, "the load ran before the end");
        }
    }
}

#[test]
fn shutdown_ends_it() {
    for shards in SHARDS {
        let mut server = Server::start(shards, &[]);
        let mut client = server.client();
        client.send("SHUTDOWN NOSAVE\r\n");
        assert_eq!(client.read_to_end(), b"");
        assert!(server.wait_for_end().success(), "{}", server.log());
    }
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, text) = run_to_end(&["--port", &port]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&port) && text.contains("in use"), "{text}");
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn what_it_does_not_understand_stops_the_start() {
    let dir = fresh_dir();
    let file = dir.join("bad.conf");
    std::fs::write(&file, "port 7000\nno-such-directive yes\n").unwrap();
    let file = file.to_str().unwrap();
    let cases: [(&[&str], &[&str]); 7] = [
        (&["--no-such-directive", "yes"], &["no-such-directive"]),
        (&["--port", "many"], &["port", "many"]),
        (&["--port", "70000"], &["port"]),
        (&["--shards", "-1"], &["shards"]),
        (&["--io-driver", "fast"], &["io-driver", "fast"]),
        (&[file], &["no-such-directive", "2"]),
        (&["/no/such/file.conf"], &["/no/such/file.conf"]),
    ];
    for (args, words) in cases {
        let (code, text) = run_to_end(args);
        assert_eq!(code, Some(1), "{args:?}: {text}");
        for word in words {
            assert!(text.contains(word), "{args:?}: {word} is not in\n{text}");
        }
        assert!(!text.contains("panicked") && !text.contains("Ready"), "{args:?}: {text}");
    }
    let (code, text) = run_to_end(&["--dir", "/no/such/dir"]);
    assert!(code == Some(1) && text.contains("/no/such/dir"), "{text}");
    let (code, text) = run_to_end(&["--port", "0", "--bind", "256.1.1.1"]);
    assert!(code == Some(1) && text.contains("256.1.1.1"), "{text}");
    let (code, text) = run_to_end(&["--version"]);
    assert!(code == Some(0) && text.contains(env!("CARGO_PKG_VERSION")), "{text}");
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn it_says_what_it_decided() {
    let server = Server::start(3, &["--databases", "7"]);
    let log = server.log();
    for word in ["Perigee", "PID:", "3 shard(s)", "7 databases", "driver ", &server.port.to_string()] {
        assert!(log.contains(word), "{word} is not in\n{log}");
    }
    let mut client = server.client();
    client.check("SELECT 7", "-ERR DB index is out of range\r\n");
}

#[test]
fn a_config_file_and_directives_after_it() {
    let dir = fresh_dir();
    let file = dir.join("good.conf");
    std::fs::write(
        &file,
        "# a comment\ndatabases 3\nproto-max-bulk-len 2mb\nclient-output-buffer-limit normal 1mb 0 0\n",
    )
    .unwrap();
    let server = Server::of(
        &super::support::server::binary(),
        &[file.to_str().unwrap(), "--shards", "2", "--databases", "5"],
    );
    let mut client = server.client();
    client.check("SELECT 4", "+OK\r\n");
    client.check("SELECT 5", "-ERR DB index is out of range\r\n");
    client.check("CONFIG GET proto-max-bulk-len", "*2\r\n$18\r\nproto-max-bulk-len\r\n$7\r\n2097152\r\n");
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn both_drivers_serve() {
    for shards in SHARDS {
        for driver in ["epoll", "uring"] {
            if driver == "uring" && perigee::rt::uring_usable().is_err() {
                eprintln!("*** io_uring is not available here: NOT TESTED");
                continue;
            }
            let server = Server::start(shards, &["--io-driver", driver]);
            let mut clients: Vec<Client> = (0..20).map(|_| server.client()).collect();
            for (i, client) in clients.iter_mut().enumerate() {
                client.check(&format!("SET k{i} {i}"), "+OK\r\n");
                client.check(
                    &format!("MGET k{i} none"),
                    format!("*2\r\n${}\r\n{i}\r\n$-1\r\n", i.to_string().len()),
                );
            }
            let big = "x".repeat(3 << 20);
            for client in &mut clients {
                client.run_words(&["SET", "big", &big]);
                assert_eq!(client.run("GET big").text(), big.as_bytes());
            }
        }
    }
}

#[test]
fn it_moves_to_other_addresses_and_stays_where_it_cannot() {
    for shards in SHARDS {
        let server = Server::start(shards, &[]);
        let mut client = server.client();
        let serves = |port: u16| Client::try_connect(port).is_ok_and(|mut c| c.bytes("PING") == b"+PONG\r\n");
        let port = free_port();
        client.check(&format!("CONFIG SET port {port}"), "+OK\r\n");
        client.check("PING", "+PONG\r\n");
        assert!(serves(port) && !serves(server.port));
        let info = client.run("INFO server").string();
        assert!(info.contains(&format!("tcp_port:{port}\r\n")), "{info}");

        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let refusal = |name: &str, why: &str| {
            format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - {why}\r\n")
        };
        client.check(
            &format!("CONFIG SET port {}", other.local_addr().unwrap().port()),
            refusal("port", "Unable to listen on this port. Check server logs."),
        );
        client.check(
            "CONFIG SET bind 999.999.999.999",
            refusal("bind", "Failed to bind to specified addresses."),
        );
        assert!(serves(port));
        client.check("CONFIG GET bind", "*2\r\n$4\r\nbind\r\n$9\r\n127.0.0.1\r\n");

        client.check("CONFIG SET bind \"127.0.0.1 -::1\"", "+OK\r\n");
        assert!(serves(port));
        for nowhere in ["bind \"\"", "port 0"] {
            client.check(&format!("CONFIG SET {nowhere}"), "+OK\r\n");
            assert!(!serves(port), "{nowhere}");
            client.check(&format!("CONFIG SET bind 127.0.0.1 port {port}"), "+OK\r\n");
            assert!(serves(port));
        }
    }
}

#[test]
fn there_are_no_modules() {
    for (allowed, load) in [
        (
            "no",
            "-ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it \
             from a local connection, otherwise you need to set this option in the configuration file, and then \
             restart the server.\r\n",
        ),
        ("local", "-ERR Error loading the extension. Please check the server logs.\r\n"),
    ] {
        let server = Server::start(1, &["--enable-module-command", allowed]);
        let mut client = server.client();
        client.check("MODULE LIST", "*0\r\n");
        client.check("MODULE LOAD nosuch.so", load);
    }
}
