//! When the log gets something: before anybody hears of it; and what waited clients leave in it.
use super::world::{World, encode, records};

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// The log so far, a record a line.
fn logged(world: &mut World) -> Vec<String> {
    let records = records(&world.take_log());
    let show = |record: Vec<Vec<u8>>| String::from_utf8_lossy(&record.join(&b' ')).into_owned();
    records.into_iter().filter(|record| record[0] != b"SELECT").map(show).collect()
}

/// Whatever step of whichever shard comes next, a reply is never there before its record.
#[test]
fn records_come_before_replies() {
    for shards in [1, 4] {
        let mut world = World::start(shards);
        let keys: Vec<String> = (0..40).map(|number| format!("key:{number}")).collect();
        let bytes: Vec<u8> = keys.iter().flat_map(|key| encode(&words(&format!("SET {key} 1")))).collect();
        let mut seen = Vec::new();
        world.send_watched(&bytes, |host, output| {
            seen.extend(records(&host.journal.take_captured()));
            let replies = output.windows(5).filter(|bytes| bytes == b"+OK\r\n").count();
            let sets = seen.iter().filter(|record| record[0] == b"SET").count();
            assert!(replies <= sets, "{replies} replies, {sets} records, {shards} shards");
        });
        assert_eq!(seen.iter().filter(|record| record[0] == b"SET").count(), keys.len());
    }
}

/// A client that wants no replies gives its shard no reason to write.
#[test]
fn who_reads_hears_of_nothing_that_is_not_logged() {
    let mut world = World::start(4);
    let mut reader = world.shards[1].connect();
    world.post(&encode(&words("CLIENT REPLY OFF")));
    let mut unwritten = 0;
    for number in 0..40 {
        let key = format!("key:{number}");
        world.post(&encode(&words(&format!("SET {key} 1"))));
        let has_run = world.shards[0].local.has_unwritten();
        unwritten += usize::from(has_run);
        reader.run(Some(&encode(&words(&format!("GET {key}")))));
        let early = reader.output.clone();
        let log = logged(&mut world);
        assert!(!early.starts_with(b"$1") || log == [format!("SET {key} 1")], "{key}: {log:?}");
        world.settle_with(&mut reader);
        assert!(!has_run || reader.output.starts_with(b"$1"), "{key}");
        reader.output.clear();
        world.take_log();
    }
    assert!(unwritten > 0, "some keys are the shard's own");
}

#[test]
fn who_waited_leaves_units_of_its_own() {
    for shards in [1, 3] {
        let mut world = World::start(shards);
        let mut waiting = world.shards[shards - 1].connect();
        for line in ["BLPOP list 0", "BLMOVE other there LEFT RIGHT 0", "BZPOPMIN sorted 0"] {
            waiting.run(Some(&encode(&words(line))));
            world.settle_with(&mut waiting);
            world.line(match &line[..4] {
                "BLPO" => "RPUSH list a b",
                "BLMO" => "RPUSH other a",
                _ => "ZADD sorted 1 a",
            });
            world.settle_with(&mut waiting);
        }
        let wanted = [
            "RPUSH list a b",
            "LPOP list",
            "RPUSH other a",
            "LMOVE other there LEFT RIGHT",
            "ZADD sorted 1 a",
            "ZPOPMIN sorted",
        ];
        assert_eq!(logged(&mut world), wanted, "{shards} shards");
        // In one transaction, those who wait come behind it.
        waiting.run(Some(&encode(&words("BLPOP list2 0"))));
        world.settle_with(&mut waiting);
        for line in ["MULTI", "RPUSH list2 a", "INCR n", "GET n", "EXEC"] {
            world.line(line);
        }
        world.settle_with(&mut waiting);
        let wanted = ["MULTI", "RPUSH list2 a", "INCR n", "EXEC", "LPOP list2"];
        assert_eq!(logged(&mut world), wanted, "{shards} shards");
    }
}

#[test]
fn a_unit_is_whole_and_what_changes_nothing_leaves_nothing() {
    for shards in [1, 4] {
        let mut world = World::start(shards);
        for line in ["MULTI", "GET a", "DEL nothing", "EXEC", "MULTI", "SET a 1", "EXEC"] {
            world.line(line);
        }
        assert_eq!(logged(&mut world), ["SET a 1"]);
        let script =
            "redis.call('set','b',1) redis.call('incr','c') redis.call('get','a') redis.call('incr','d')";
        world.run(&[b"EVAL".to_vec(), script.as_bytes().to_vec(), b"0".to_vec()]);
        assert_eq!(logged(&mut world), ["MULTI", "set b 1", "incr c", "incr d", "EXEC"]);
        world.run(&[b"EVAL".to_vec(), b"return redis.call('get','a')".to_vec(), b"0".to_vec()]);
        for line in ["MULTI", "SELECT 3", "SET a 1", "SELECT 0", "MSET a 1 b 2 c 3", "EXEC"] {
            world.line(line);
        }
        assert_eq!(logged(&mut world), ["MULTI", "SET a 1", "MSET a 1 b 2 c 3", "EXEC"]);
        world.line("FUNCTION FLUSH");
        assert_eq!(logged(&mut world), ["FUNCTION FLUSH"]);
    }
}

#[test]
fn what_expires_is_logged_by_whoever_deletes_it() {
    for shards in [1, 4] {
        let mut world = World::start(shards);
        for line in ["SET a 1 PX 10", "SET b 1 PX 10", "HSET h f 1 g 2", "HPEXPIRE h 10 FIELDS 1 f"] {
            world.line(line);
        }
        world.take_log();
        world.pass(20);
        world.line("GET a");
        assert_eq!(logged(&mut world), ["DEL a"]);
        world.line("DEBUG SET-ACTIVE-EXPIRE 1");
        world.tick();
        let mut log = logged(&mut world);
        log.sort();
        assert_eq!(log, ["DEL b", "HDEL h f"]);
    }
}
