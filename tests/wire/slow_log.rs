//! SLOWLOG and LATENCY: what took long is remembered, with who asked for it.
use super::on_all_shards;
use super::support::{Client, Server, Value};

/// The words of an entry of the slow log.
fn words(entry: &Value) -> String {
    entry.items()[3].items().iter().map(Value::string).collect::<Vec<_>>().join(" ")
}

fn entries(client: &mut Client) -> Vec<Value> {
    client.run("SLOWLOG GET -1").items()
}

#[test]
fn everything_may_be_logged() {
    on_all_shards(|server, client| {
        client.check("CLIENT SETNAME lumberjack", "+OK\r\n");
        client.check("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
        client.check("SLOWLOG RESET", "+OK\r\n");
        let mut lines: Vec<String> = (0..8).map(|i| format!("SET key{i} v")).collect();
        lines.extend((0..8).map(|i| format!("GET key{i}")));
        lines.push("MSET key0 a key1 b key2 c key3 d".into());
        lines.push("MGET key0 key1 key2 key3 key4 key5".into());
        lines.push("INCR key0".into());
        lines.iter().for_each(|line| drop(client.run(line)));
        let own = client.stream().local_addr().unwrap().to_string();
        let found = entries(client);
        let logged: Vec<String> = found.iter().rev().map(words).collect();
        assert_eq!(logged[0], "SLOWLOG RESET");
        assert_eq!(logged[1..], lines);
        for pair in found.windows(2) {
            assert_eq!(pair[0].items()[0].int(), pair[1].items()[0].int() + 1);
        }
        for entry in &found {
            let [_, at, took, _, addr, name] = &entry.items()[..] else { panic!("six fields") };
            assert!(at.int() > 1_600_000_000 && (0..1_000_000).contains(&took.int()));
            assert_eq!((addr.string(), name.string()), (own.clone(), "lumberjack".to_string()));
        }
        assert_eq!(client.run("SLOWLOG GET").items().len(), 10);
        assert_eq!(client.run("SLOWLOG GET 3").items().len(), 3);
        client.check("SLOWLOG GET -2", "-ERR count should be greater than or equal to -1\r\n");
        client.check("CONFIG SET slowlog-log-slower-than -1", "+OK\r\n");
        client.check("SLOWLOG RESET", "+OK\r\n");
        server.client().check("GET key1", "$1\r\nb\r\n");
        client.check("SLOWLOG LEN", ":0\r\n");
    });
}

#[test]
fn entries_are_short_and_keep_secrets() {
    on_all_shards(|_, client| {
        client.check("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 5", "+OK\r\n");
        let many: Vec<String> = (0..40).map(|i| format!("m{i}")).collect();
        client.run_words(&[&["DEL".to_string()][..], &many].concat());
        client.run_words(&["SET".to_string(), "long".into(), "y".repeat(150)]);
        client.run("CONFIG SET tls-key-file-pass secret maxclients 100");
        client.run("AUTH someone secret");
        let found: Vec<String> = entries(client).iter().map(words).collect();
        assert_eq!(found.len(), 5);
        assert_eq!(found[0], "AUTH (redacted) (redacted)");
        assert_eq!(found[1], "CONFIG SET tls-key-file-pass (redacted) maxclients 100");
        assert_eq!(found[2], format!("SET long {}... (22 more bytes)", "y".repeat(128)));
        assert!(found[3].ends_with(" m29 ... (10 more arguments)"), "{}", found[3]);
        client.check("CONFIG SET slowlog-max-len 1", "+OK\r\n");
        client.run("PING");
        client.check("SLOWLOG LEN", ":1\r\n");
    });
}

#[test]
fn what_sleeps_is_slow() {
    on_all_shards(|_, client| {
        client.check("CONFIG SET latency-monitor-threshold 50", "+OK\r\n");
        client.check("LATENCY RESET", ":0\r\n");
        client.check("DEBUG SLEEP 0.06", "+OK\r\n");
        client.check("PING", "+PONG\r\n");
        let entry = &entries(client)[0];
        assert_eq!(words(entry), "DEBUG SLEEP 0.06");
        assert!((60_000..200_000).contains(&entry.items()[2].int()), "{entry:?}");
        let latest = client.run("LATENCY LATEST");
        let event = latest.items()[0].items();
        assert_eq!((event.len(), event[0].string()), (4, "command".to_string()));
        assert!((60..200).contains(&event[2].int()) && event[3].int() >= event[2].int());
        let history = client.run("LATENCY HISTORY command");
        assert_eq!(history.items()[0].items()[1].int(), event[2].int());
        assert!(client.run("LATENCY GRAPH command").string().starts_with("command - high "));
        assert!(client.run("LATENCY DOCTOR").string().contains("1. command: 1 seconds"));
        client.check("LATENCY HISTORY nothing", "*0\r\n");
        client.check("LATENCY GRAPH nothing", "-ERR No samples available for event 'nothing'\r\n");
        client.check("LATENCY RESET nothing COMMAND", ":1\r\n");
        client.check("LATENCY LATEST", "*0\r\n");
    });
}

#[test]
fn calls_are_counted_by_duration() {
    on_all_shards(|server, client| {
        client.check("CONFIG RESETSTAT", "+OK\r\n");
        let mut other = server.client();
        for i in 0..50 {
            client.run(&format!("SET key{i} v"));
            other.run(&format!("GET key{i}"));
        }
        client.run("CLIENT ID");
        let histogram = client.run("LATENCY HISTOGRAM set GET client nosuch");
        let flat = histogram.items();
        let named: Vec<String> = flat.iter().step_by(2).map(Value::string).collect();
        assert_eq!(named, ["set", "get", "client|id"]);
        for (facts, calls) in flat.iter().skip(1).step_by(2).zip([50, 50, 1]) {
            let facts = facts.items();
            assert_eq!((facts[0].string(), facts[1].int()), ("calls".to_string(), calls));
            let steps = facts[3].items();
            assert_eq!(steps.last().unwrap().int(), calls, "the last step has all");
            assert!(steps.chunks(2).is_sorted_by_key(|step| (step[0].int(), step[1].int())));
        }
        let info = client.run("INFO latencystats commandstats").string();
        assert!(info.contains("latency_percentiles_usec_get:p50="), "{info}");
        assert!(info.contains("cmdstat_get:calls=50,"), "{info}");
        client.check("CONFIG SET latency-tracking no", "+OK\r\n");
        client.run("GET a");
        assert!(!client.run("INFO latencystats").string().contains("p50"));
        assert!(client.run("INFO commandstats").string().contains("cmdstat_get:calls=51,"));
        client.check(
            "CONFIG SET latency-tracking yes latency-tracking-info-percentiles \"50 99.9 100\"",
            "+OK\r\n",
        );
        let info = client.run("INFO latencystats").string();
        let line = info.lines().find(|line| line.starts_with("latency_percentiles_usec_get:")).unwrap();
        assert!(line.contains("p50=") && line.contains(",p99.9=") && line.contains(",p100="), "{line}");
    });
}

#[test]
fn the_monitor_of_latency_knows_expiry() {
    let server = Server::start(1, &[]);
    let mut client = server.client();
    client.check("LATENCY RESET", ":0\r\n");
    assert!(client.run("LATENCY DOCTOR").string().contains("is off"));
    let help = client.run("LATENCY HELP");
    assert!(help.items().iter().any(|line| line.string().starts_with("HISTOGRAM")));
}
