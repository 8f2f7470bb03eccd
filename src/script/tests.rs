//! A bridge to a few made-up commands, and the tests of the whole engine. Texts of errors are those that Redis 8.0.6
//! prints.
use std::collections::HashMap;

use super::host::sha1_hex;
use super::*;
use crate::rt::sys::fiber::STACK_BYTES;
use crate::wire::{Error, Protocol};

/// Answers GET, SET, INCR, ECHO, PING and replies given raw; counts what it is asked.
#[derive(Default)]
struct Fake {
    data: HashMap<Vec<u8>, i64>,
    pulses: u32,
    pulses_max: u32,
    repl: u8,
    log: Vec<(Level, String)>,
    failed: Vec<(String, bool)>,
}

impl Bridge for std::rc::Rc<std::cell::RefCell<Fake>> {
    fn call(&mut self, words: Words<'_>, out: &mut Out) {
        let mut fake = self.borrow_mut();
        match &words.get(0).to_ascii_lowercase()[..] {
            b"ping" => out.simple("PONG"),
            b"echo" => out.bulk(words.get(1)),
            b"count" => out.count(words.spans.len()),
            b"raw" => out.buf.extend_from_slice(words.get(1)),
            b"protocol" => out.int(if out.protocol == Protocol::Resp3 { 3 } else { 2 }),
            b"incr" if words.spans.len() == 2 => {
                let value = fake.data.entry(words.get(1).to_vec()).or_default();
                *value += 1;
                out.int(*value);
            }
            b"incr" => out.error(&Error::err("Wrong number of args calling Redis command from script")),
            _ => out.error(&Error::err("Unknown Redis command called from script")),
        }
    }

    fn pulse(&mut self) -> Result<(), String> {
        let mut fake = self.borrow_mut();
        fake.pulses += 1;
        if fake.pulses >= fake.pulses_max {
            return Err("Script killed by user with SCRIPT KILL...".to_string());
        }
        Ok(())
    }

    fn log(&mut self, level: Level, text: &[u8]) {
        self.borrow_mut().log.push((level, String::from_utf8_lossy(text).into_owned()));
    }

    fn set_repl(&mut self, flags: u8) {
        self.borrow_mut().repl = flags;
    }

    fn may_call(&mut self, words: Words<'_>) -> Option<bool> {
        match words.get(0) {
            b"get" => Some(true),
            b"set" => Some(false),
            _ => None,
        }
    }

    fn failed(&mut self, line: &[u8], counted: bool) {
        self.borrow_mut().failed.push((String::from_utf8_lossy(line).into_owned(), counted));
    }
}

/// An engine with its registries.
struct House {
    engine: Engine,
    scripts: Scripts,
    libraries: Libraries,
    fake: std::rc::Rc<std::cell::RefCell<Fake>>,
}

impl House {
    fn new() -> House {
        let fake = std::rc::Rc::new(std::cell::RefCell::new(Fake { pulses_max: 3, ..Fake::default() }));
        let (scripts, libraries) = (Scripts::default(), Libraries::default());
        House { engine: Engine::new(Options::default()), scripts, libraries, fake }
    }

    fn run(&self, ready: &Ready, keys: &[&[u8]], args: &[&[u8]], protocol: Protocol) -> String {
        let mut out = Out::new(protocol);
        let (keys, args) = (keys.iter().copied(), args.iter().copied());
        self.engine.run(ready, keys, args, &mut self.fake.clone(), &mut out);
        String::from_utf8_lossy(&out.buf).into_owned()
    }

    fn eval_with(&self, body: &str, keys: &[&[u8]], args: &[&[u8]], protocol: Protocol) -> String {
        match self.engine.script(&self.scripts, body.as_bytes(), false) {
            Ok(ready) => {
                // The name is the script's own; it would only be noise here.
                self.run(&ready, keys, args, protocol).replace(&ready.name, "<sha>")
            }
            Err(error) => format!("-{error}\r\n"),
        }
    }

    fn eval(&self, body: &str) -> String {
        self.eval_with(body, &[], &[], Protocol::Resp2)
    }

    fn eval3(&self, body: &str) -> String {
        self.eval_with(body, &[], &[], Protocol::Resp3)
    }

    fn load(&self, code: &str) -> Result<(), String> {
        let library = self.engine.library(code.as_bytes(), |_| Ok(())).map_err(|e| e.to_string())?;
        self.libraries.insert(library, false).map_err(|e| e.to_string())
    }

    fn fcall(&self, name: &str, keys: &[&[u8]], args: &[&[u8]]) -> String {
        match self.engine.function(&self.libraries, name.as_bytes()) {
            Some(ready) => self.run(&ready, keys, args, Protocol::Resp2),
            None => "none".to_string(),
        }
    }
}

/// Runs `body` and compares the one line of its answer.
#[track_caller]
fn says(house: &House, body: &str, line: &str) {
    assert_eq!(house.eval(body).trim_end_matches("\r\n"), line, "{body}");
}

/// The error that a script ends with at its first line.
#[track_caller]
fn fails(house: &House, body: &str, text: &str) {
    says(house, body, &format!("-{text} script: <sha>, on @user_script:1."));
}

#[test]
fn commands_are_called() {
    let house = House::new();
    let incr = "return redis.call('INCR', KEYS[1])";
    for n in 1..=2 {
        assert_eq!(house.eval_with(incr, &[b"k"], &[], Protocol::Resp2), format!(":{n}\r\n"));
    }
    says(&house, "return redis.call('count', 1, 2.5, 'x', 2^53)", ":5");
    says(&house, "return redis.call('echo', 9007199254740993)", "$16\r\n9007199254740992");
    says(&house, "return redis.call('echo', 0.1)", "$3\r\n0.1");
    says(&house, "return redis.call('echo', 1e20)", "$5\r\n1e+20");
    says(&house, "return redis.call('echo', 1e300)", "$6\r\n1e+300");
    says(
        &house,
        "return redis.pcall('incr').err",
        "$58\r\nERR Wrong number of args calling Redis command from script",
    );
    says(&house, "return redis.pcall('nope')", "-ERR Unknown Redis command called from script");
    let args: &[&[u8]] = &[b"\xff\0", b""];
    assert_eq!(
        house.eval_with("return ARGV", &[], args, Protocol::Resp2),
        "*2\r\n$2\r\n\u{fffd}\0\r\n$0\r\n\r\n"
    );
}

#[test]
fn errors_say_where() {
    let house = House::new();
    let user = "ERR user_script:1:";
    fails(
        &house,
        "return foo",
        &format!("{user} Script attempted to access nonexistent global variable 'foo'"),
    );
    fails(
        &house,
        "return _G[1]",
        &format!("{user} Script attempted to access nonexistent global variable '1'"),
    );
    let wrong = "ERR Wrong number of args calling Redis command from script";
    fails(&house, "return redis.call('incr')", wrong);
    fails(&house, "local function f() return redis.call('incr') end return f()", wrong);
    says(&house, "\n\nredis.call('incr')", &format!("-{wrong} script: <sha>, on @user_script:3."));
    fails(&house, "return redis.call()", "ERR Please specify at least one argument for this redis lib call");
    let bad = "ERR Lua redis lib command arguments must be strings or integers";
    fails(&house, "return redis.call('get', nil)", bad);
    fails(&house, "return redis.call('get', {})", bad);
    fails(&house, "error('boom')", &format!("{user} boom"));
    fails(&house, "error({err='My boom'})", "My boom");
    fails(&house, "error({})", "ERR unknown error");
    fails(&house, "error()", "ERR nil");
    fails(&house, "pairs(nil)", &format!("{user} bad argument #1 to 'pairs' (table expected, got nil)"));
    let rep = "bad argument #1 to 'rep' (string expected, got no value)";
    fails(&house, "return string.rep()", &format!("{user} {rep}"));
    fails(&house, "return redis.foo()", &format!("{user} attempt to call field 'foo' (a nil value)"));
    fails(&house, "local function f() return 1+f() end return f()", &format!("{user} stack overflow"));
    says(
        &house,
        "local f=",
        "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'",
    );
    says(
        &house,
        "\x1bLua",
        "-ERR Error compiling script (new function): user_script:1: unexpected symbol near 'char(27)'",
    );
    says(&house, "#!js\nreturn 1", "-ERR Unexpected engine in script shebang: #!js");
    says(&house, "#!lua\nreturn 1", ":1");
    says(
        &house,
        "#!lua\nx()",
        "-ERR user_script:2: Script attempted to access nonexistent global variable 'x' script: <sha>, on @user_script:2.",
    );
}

#[test]
fn errors_can_be_caught() {
    let house = House::new();
    let text = "$58\r\nERR Wrong number of args calling Redis command from script";
    says(&house, "local ok, e = pcall(redis.call, 'incr') return e", text);
    says(
        &house,
        "local ok, e = pcall(redis.call, 'incr') return type(e) .. tostring(ok)",
        "$11\r\nstringfalse",
    );
    says(&house, "local ok, e = pcall(error, {err='a b'}) return e", "$3\r\na b");
    says(&house, "local ok, e = pcall(error, {x=1}) return e.x", ":1");
    says(
        &house,
        "local ok, e = pcall(math.random, 0) return e",
        "$47\r\nbad argument #1 to 'random' (interval is empty)",
    );
    says(
        &house,
        "local ok, e = xpcall(function() redis.call('incr') end, function(e) return type(e) .. e.err end) return e",
        "$63\r\ntableERR Wrong number of args calling Redis command from script",
    );
    says(
        &house,
        "local c = coroutine.create(function() redis.call('incr') end) local ok, e = coroutine.resume(c) return e.err",
        text,
    );
    says(&house, "return {pcall(function(...) return ... end, 1, 2)}", "*3\r\n:1\r\n:1\r\n:2");
    fails(&house, "local f = coroutine.wrap(function() redis.call('incr') end) f()", &text[5..]);
    says(
        &house,
        "local ok, e = pcall(function() local x = nil; x() end) return e",
        "$54\r\nuser_script:1: attempt to call local 'x' (a nil value)",
    );
}

#[test]
fn the_sandbox_is_closed() {
    let house = House::new();
    let placed = "ERR user_script:1: Attempt to modify a readonly table";
    for body in [
        "x = 1",
        "redis = nil",
        "redis.call = 1",
        "_G.x = 1",
        "string.x = 1",
        "math.random = 1",
        "KEYS = {}",
        "getmetatable(_G).__index = {}",
        "getmetatable('').__index = {}",
        "getmetatable('').__index.x = 1",
        "function foo() end",
    ] {
        fails(&house, body, placed);
    }
    for body in
        ["rawset(_G, 'x', 1)", "setmetatable(_G, {})", "setmetatable(redis, nil)", "rawset(table, 1, 1)"]
    {
        fails(&house, body, "ERR Attempt to modify a readonly table");
    }
    for name in [
        "print", "dofile", "loadfile", "require", "module", "package", "io", "debug", "newproxy", "setfenv",
        "getfenv",
    ] {
        let text =
            format!("ERR user_script:1: Script attempted to access nonexistent global variable '{name}'");
        fails(&house, &format!("return {name}"), &text);
    }
    fails(&house, "return os.exit()", "ERR user_script:1: attempt to call field 'exit' (a nil value)");
    says(&house, "return loadstring('\\27Lua')", "$-1");
    says(
        &house,
        "local f, e = loadstring('\\27Lua') return e",
        "$52\r\n[string \"\u{1b}Lua\"]:1: unexpected symbol near 'char(27)'",
    );
    says(
        &house,
        "local f, e = load(function() return '\\27Lua' end) return e",
        "$43\r\n(load):1: unexpected symbol near 'char(27)'",
    );
    says(&house, "local c = string.dump(function() return 1 end) return {loadstring(c)}", "*0");
    says(&house, "return loadstring('return 1 + ...')(2)", ":3");
    says(&house, "return tostring(getmetatable(redis))", "$3\r\nnil");
    says(&house, "return ('x'):rep(3)", "$3\r\nxxx");
    fails(
        &house,
        "local t = setmetatable({}, {__metatable = 1}) setmetatable(t, {})",
        "ERR user_script:1: cannot change a protected metatable",
    );
}

/// The keys of a table, as scripts see them.
fn keys_of(table: &str) -> String {
    let house = House::new();
    house.eval(&format!(
        "local r = {{}} for k in pairs({table}) do r[#r + 1] = k end table.sort(r) return table.concat(r, ' ')"
    ))
}

#[test]
fn globals_are_those_of_redis() {
    let globals = "ARGV KEYS _G _VERSION assert collectgarbage coroutine error gcinfo getmetatable ipairs load \
                   loadstring math next os pairs pcall rawequal rawget rawset redis select setmetatable string table \
                   tonumber tostring type unpack xpcall";
    let ours = keys_of("_G");
    for name in globals.split_whitespace() {
        assert!(ours.contains(name), "{name} is missing");
    }
    for (table, keys) in [
        ("table", "concat foreach foreachi getn insert maxn remove setn sort"),
        ("string", "byte char dump find format gfind gmatch gsub len lower match rep reverse sub upper"),
        (
            "math",
            "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min mod modf pi \
             pow rad random randomseed sin sinh sqrt tan tanh",
        ),
        ("os", "clock"),
        ("coroutine", "create resume running status wrap yield"),
        (
            "redis",
            "LOG_DEBUG LOG_NOTICE LOG_VERBOSE LOG_WARNING REDIS_VERSION REDIS_VERSION_NUM REPL_ALL REPL_AOF REPL_NONE \
             REPL_REPLICA REPL_SLAVE acl_check_cmd breakpoint call debug error_reply log pcall replicate_commands \
             set_repl setresp sha1hex status_reply",
        ),
    ] {
        assert_eq!(keys_of(table), format!("${}\r\n{keys}\r\n", keys.len()));
    }
}

#[test]
fn nothing_stays_behind() {
    let house = House::new();
    says(&house, "table.insert(redis, 'left') return redis[1]", "$4\r\nleft");
    (0..256).for_each(|_| drop(house.eval("return 1")));
    says(&house, "return redis[1]", "$-1");
    house.eval_with("return 1", &[b"k"], &[b"a"], Protocol::Resp2);
    says(&house, "return #KEYS + #ARGV", ":0");
}

#[test]
fn answers_are_converted() {
    let house = House::new();
    says(
        &house,
        "return {1, 2.9, -2.9, 1e300, 0/0, true, false, 'x', nil, 3}",
        "*8\r\n:1\r\n:2\r\n:-2\r\n:-9223372036854775808\r\n:-9223372036854775808\r\n:1\r\n$-1\r\n$1\r\nx",
    );
    says(&house, "return", "$-1");
    says(&house, "return function() end", "$-1");
    says(&house, "return {ok='a\\nb', err=1}", "+a b");
    says(&house, "return {err='x y\\n'}", "-x y");
    says(&house, "return {double=3.5}", "$3\r\n3.5");
    says(&house, "return {map={a={1}}}", "*2\r\n$1\r\na\r\n*1\r\n:1");
    says(&house, "return {{set={x=true}}, {}}", "*2\r\n*1\r\n$1\r\nx\r\n*0");
    says(&house, "return redis.status_reply('FINE')", "+FINE");
    says(&house, "return redis.error_reply('MY err')", "-MY err");
    says(&house, "return redis.error_reply('-x')", "-ERR x");
    says(&house, "return redis.error_reply(1)", "-ERR wrong number or type of arguments");
    assert_eq!(house.eval3("return {map={[1]=2}}"), "%1\r\n:1\r\n:2\r\n");
    assert_eq!(house.eval3("return {set={x=true}}"), "~1\r\n$1\r\nx\r\n");
    assert_eq!(house.eval3("return {double=3.5}"), ",3.5\r\n");
    assert_eq!(house.eval3("return {big_number='12\\n3'}"), "(12 3\r\n");
    assert_eq!(house.eval3("return {verbatim_string={format='tx', string='hi'}}"), "=6\r\ntx :hi\r\n");
    assert_eq!(house.eval3("return {true, false, nil}"), "*2\r\n:1\r\n_\r\n");
    assert_eq!(house.eval3("redis.setresp(3) return {true, false}"), "*2\r\n#t\r\n#f\r\n");
    let endless = house.eval("local a = {} a[1] = a return a");
    assert!(
        endless.starts_with("*1\r\n*1\r\n") && endless.ends_with("*1\r\n-ERR reached lua stack limit\r\n")
    );
    let endless = house.eval("local a = {} a.map = {[1]=a} return a");
    assert!(endless.contains("-ERR reached lua stack limit\r\n"));
    let failed = std::mem::take(&mut house.fake.borrow_mut().failed);
    assert!(failed.contains(&("x y".to_string(), false)));
    says(&house, "return redis.pcall('nope')", "-ERR Unknown Redis command called from script");
    assert!(house.fake.borrow().failed[0].1, "a command counted it");
}

#[test]
fn replies_are_converted() {
    let house = House::new();
    let raw = |reply: &str, expression: &str| {
        let body = format!("redis.setresp(3) local r = redis.pcall('raw', ARGV[1]) return {expression}");
        house.eval_with(&body, &[], &[reply.as_bytes()], Protocol::Resp2)
    };
    assert_eq!(raw(":5\r\n", "r"), ":5\r\n");
    assert_eq!(raw("$-1\r\n", "tostring(r)"), "$5\r\nfalse\r\n");
    assert_eq!(raw("*-1\r\n", "tostring(r)"), "$5\r\nfalse\r\n");
    assert_eq!(raw("_\r\n", "tostring(r)"), "$3\r\nnil\r\n");
    assert_eq!(raw("#t\r\n", "tostring(r)"), "$4\r\ntrue\r\n");
    assert_eq!(raw("+OK\r\n", "r.ok"), "$2\r\nOK\r\n");
    assert_eq!(raw("-ERR a b\r\n", "{r.err, r.ignore_error_stats_update}"), "*2\r\n$7\r\nERR a b\r\n:1\r\n");
    assert_eq!(raw("*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", "r"), "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n");
    assert_eq!(raw(",1.5\r\n", "tostring(r.double)"), "$3\r\n1.5\r\n");
    assert_eq!(raw("(123\r\n", "r.big_number"), "$3\r\n123\r\n");
    assert_eq!(raw("%1\r\n$1\r\na\r\n:1\r\n", "r.map.a"), ":1\r\n");
    assert_eq!(raw("~1\r\n$1\r\na\r\n", "tostring(r.set.a)"), "$4\r\ntrue\r\n");
    assert_eq!(
        raw("=6\r\ntxt:hi\r\n", "{r.verbatim_string.format, r.verbatim_string.string}"),
        "*2\r\n$3\r\ntxt\r\n$2\r\nhi\r\n"
    );
    assert_eq!(raw("|1\r\n:1\r\n:2\r\n:3\r\n", "r"), ":3\r\n");
    assert_eq!(raw("$5\r\nab", "r.err"), "$43\r\nERR a reply of the server could not be read\r\n");
}

#[test]
fn the_redis_table_works() {
    let house = House::new();
    says(&house, "return redis.sha1hex('')", "$40\r\nda39a3ee5e6b4b0d3255bfef95601890afd80709");
    says(&house, "return redis.sha1hex(12)", "$40\r\n7b52009b64fd0a2a49e6d8a939753077792b0554");
    fails(&house, "redis.sha1hex()", "ERR wrong number of arguments");
    says(&house, "redis.log(redis.LOG_WARNING, 'a', 1, {}, 'b')", "$-1");
    assert_eq!(house.fake.borrow().log, [(Level::Warning, "a 1 b".to_string())]);
    fails(&house, "return redis.log(1)", "ERR redis.log() requires two arguments or more.");
    fails(&house, "return redis.log('x', 'y')", "ERR First argument must be a number (log level).");
    fails(&house, "return redis.log(10, 'y')", "ERR Invalid log level.");
    fails(&house, "return redis.setresp()", "ERR redis.setresp() requires one argument.");
    fails(&house, "return redis.setresp(4)", "ERR RESP version must be 2 or 3.");
    says(
        &house,
        "local a = redis.call('protocol') redis.setresp(3) return a * 10 + redis.call('protocol')",
        ":23",
    );
    says(&house, "return redis.call('protocol')", ":2");
    fails(&house, "redis.set_repl()", "ERR redis.set_repl() requires one argument.");
    let flags = "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
    fails(&house, "redis.set_repl(9)", flags);
    says(&house, "redis.set_repl(redis.REPL_ALL)", "$-1");
    assert_eq!(house.fake.borrow().repl, 3);
    says(
        &house,
        "return {redis.acl_check_cmd('get'), redis.acl_check_cmd('set', 'k') == false}",
        "*2\r\n:1\r\n:1",
    );
    fails(&house, "return redis.acl_check_cmd('x')", "ERR Invalid command passed to redis.acl_check_cmd()");
    says(
        &house,
        "return {redis.replicate_commands(), redis.breakpoint() == false, redis.debug('x')}",
        "*2\r\n:1\r\n:1",
    );
    says(&house, "return redis.REDIS_VERSION_NUM", ":524294");
    says(
        &house,
        "math.randomseed(0) return {tostring(math.random()), math.random(1000000), math.random(-5, 5)}",
        "*3\r\n$16\r\n0.17082803611217\r\n:749902\r\n:-4",
    );
    fails(&house, "math.random(5, 1)", "ERR user_script:1: bad argument #2 to 'random' (interval is empty)");
    fails(&house, "math.random(1, 2, 3)", "ERR user_script:1: wrong number of arguments");
    fails(
        &house,
        "math.random('a')",
        "ERR user_script:1: bad argument #1 to 'random' (number expected, got string)",
    );
    fails(
        &house,
        "math.randomseed()",
        "ERR user_script:1: bad argument #1 to 'randomseed' (number expected, got no value)",
    );
}

#[test]
fn endless_scripts_are_killed() {
    let house = House::new();
    let text = "ERR Script killed by user with SCRIPT KILL...";
    fails(&house, "while true do end", text);
    assert_eq!(house.fake.borrow().pulses, 3);
    house.fake.borrow_mut().pulses = 0;
    fails(&house, "while true do pcall(function() while true do end end) end", text);
    house.fake.borrow_mut().pulses = 0;
    let body = "while true do coroutine.resume(coroutine.create(function() while true do end end)) end";
    fails(&house, body, text);
    says(&house, "return 1", ":1");
}

#[test]
fn scripts_are_known_and_forgotten() {
    let house = House::new();
    let sha = sha1_hex(b"return 7");
    assert!(house.engine.find(&house.scripts, &sha).is_none());
    house.engine.script(&house.scripts, b"return 7", true).unwrap();
    let other = Engine::new(Options::default());
    let upper = sha.map(|b| b.to_ascii_uppercase());
    let ready = other.find(&house.scripts, &upper).expect("known on all shards");
    assert_eq!(ready.name.as_bytes(), sha);
    assert!(other.memory_bytes().0 > 0 && other.memory_bytes().1 == 0);
    house.scripts.flush();
    assert!(other.find(&house.scripts, &sha).is_none());
    assert_eq!(other.memory_bytes().0, 0);
    assert_eq!(house.run(&ready, &[], &[], Protocol::Resp2), ":7\r\n", "who holds a script can run it");
    says(&house, "return 7", ":7");
}

#[test]
fn many_scripts_fit() {
    let house = House::new();
    for n in 0..9_000 {
        house.engine.script(&house.scripts, format!("return {n}").as_bytes(), true).unwrap();
    }
    says(&house, "return 8999", ":8999");
    says(&house, "return 0", ":0");
}

const LIBRARY: &str = "#!lua name=lib\n\
    local calls = 0\n\
    redis.register_function('f', function(keys, args) calls = calls + 1 return {keys, args, calls} end)\n\
    redis.register_function{function_name='G', callback=function() return redis.call('incr') end,\n\
        description='about', flags={'NO-writes'}}\n\
    redis.register_function('where', function() return foo end)\n\
    redis.register_function('code', function() return loadstring('return string')() == string end)";

#[test]
fn functions_are_called() {
    let house = House::new();
    assert_eq!(house.fcall("f", &[], &[]), "none");
    house.load(LIBRARY).unwrap();
    assert_eq!(house.fcall("F", &[b"k"], &[b"a"]), "*3\r\n*1\r\n$1\r\nk\r\n*1\r\n$1\r\na\r\n:1\r\n");
    assert!(house.fcall("f", &[], &[]).ends_with(":2\r\n"));
    let wrong = "ERR Wrong number of args calling Redis command from script";
    assert_eq!(house.fcall("g", &[], &[]), format!("-{wrong} script: G, on @user_function:4.\r\n"));
    let missing = "ERR user_function:6: Script attempted to access nonexistent global variable 'foo'";
    assert_eq!(house.fcall("where", &[], &[]), format!("-{missing} script: where, on @user_function:6.\r\n"));
    assert_eq!(house.fcall("code", &[], &[]), ":1\r\n");
    let ready = house.engine.function(&house.libraries, b"g").unwrap();
    assert_eq!(ready.flags, Flags::NO_WRITES);
    let library = &house.libraries.all().1[0];
    let function = library.functions.iter().find(|f| f.name == "G").unwrap();
    assert_eq!(function.description.as_deref(), Some(&b"about"[..]));
    house.libraries.delete(b"lib").unwrap();
    assert_eq!(house.fcall("f", &[], &[]), "none");
    assert_eq!(house.engine.memory_bytes().1, 0);
    assert!(house.run(&ready, &[], &[], Protocol::Resp2).starts_with('-'), "who holds a function can run it");
}

#[test]
fn libraries_are_refused() {
    let house = House::new();
    let refused = |code: &str| house.load(&format!("#!lua name=a\n{code}")).unwrap_err();
    let registering = |text: &str| format!("ERR Error registering functions: ERR {text}");
    assert_eq!(refused("x"), "ERR Error compiling function: user_function:2: '=' expected near '<eof>'");
    assert_eq!(refused("local x = 1"), "ERR No functions registered");
    assert_eq!(refused("x = 1"), registering("user_function:2: Attempt to modify a readonly table"));
    for (code, name) in [("redis.call('x')", "call"), ("error()", "error"), ("local a = math.pi", "math")] {
        let text =
            format!("user_function:2: Script attempted to access nonexistent global variable '{name}'");
        assert_eq!(refused(code), registering(&text));
    }
    for (args, text) in [
        ("()", "wrong number of arguments to redis.register_function"),
        ("('x', 1)", "second argument to redis.register_function must be a function"),
        ("(true, 1)", "first argument to redis.register_function must be a string"),
        ("{foo=1}", "unknown argument given to redis.register_function"),
        ("{[true]=1}", "named argument key given to redis.register_function is not a string"),
        ("{function_name='x'}", "redis.register_function must get a callback argument"),
        ("{callback=function() end}", "redis.register_function must get a function name argument"),
        ("{flags={'a'}}", "unknown flag given"),
        (
            "{flags='a'}",
            "flags argument to redis.register_function must be a table representing function flags",
        ),
        ("{callback=1}", "callback argument given to redis.register_function must be a function"),
    ] {
        assert_eq!(refused(&format!("redis.register_function{args}")), registering(text), "{args}");
    }
    let twice = "redis.register_function('a', function() end) redis.register_function('a', function() end)";
    assert_eq!(refused(twice), registering("Function already exists in the library"));
    assert_eq!(refused("while true do end"), registering("FUNCTION LOAD timeout"));
    house.load(LIBRARY).unwrap();
    assert_eq!(refused("redis.register_function('F', function() end)"), "ERR Function F already exists");
    assert_eq!(house.fcall("code", &[], &[]), ":1\r\n");
}

/// Runs `body` on a stack like a fiber's, of which commands get a quarter.
fn on_small_stack(body: &str) -> String {
    let body = body.to_string();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES / 4 * 3);
    thread.spawn(move || House::new().eval(&body)).unwrap().join().unwrap()
}

#[test]
fn no_script_overflows_the_stack() {
    let nested = "local function f() string.gsub('x', 'x', f) end f()";
    assert!(on_small_stack(nested).starts_with("-ERR C stack overflow"));
    let nested = "local function f() pcall(string.gsub, 'x', 'x', f) end f() return 1";
    assert_eq!(on_small_stack(nested), ":1\r\n");
    let long = |items: usize| {
        let pattern = format!("string.rep('a?', {items})");
        on_small_stack(&format!("return {{string.find('a', {pattern}), ('a'):match({pattern})}}"))
    };
    assert_eq!(long(4096), "*2\r\n:1\r\n$1\r\na\r\n");
    assert!(long(4097).starts_with("-ERR user_script:1: pattern too complex"));
    let plain = "local long = string.rep('a', 10000) return {string.find(long, long), tostring(string.find(long, '?' .. long, 1, true))}";
    assert_eq!(on_small_stack(plain), "*2\r\n:1\r\n$3\r\nnil\r\n");
    let deep = "return loadstring('return ' .. string.rep('(', 100000) .. '1')";
    assert_eq!(on_small_stack(deep), "$-1\r\n");
}

#[test]
fn unpack_does_not_overflow() {
    let house = House::new();
    says(&house, "return {unpack({1, 2, 3}, 2)}", "*2\r\n:2\r\n:3");
    says(&house, "return select('#', unpack({}, 1, 7000))", ":7000");
    for range in ["0, 2147483647", "1, 8000", "-2147483648, 2147483647", "0/0, 1", "-1e300, 1e300"] {
        fails(
            &house,
            &format!("local x = unpack({{}}, {range})"),
            "ERR user_script:1: too many results to unpack",
        );
    }
    let text = "ERR user_script:1: bad argument #2 to 'unpack' (number expected, got boolean)";
    fails(&house, "local x = unpack({}, false)", text);
}

/// Not a test of anything but how long a call takes: `cargo test --lib script::tests::speed -- --ignored --nocapture`.
#[test]
#[ignore = "prints times"]
fn speed() {
    let house = House::new();
    let mut out = Out::new(Protocol::Resp2);
    for (name, body, keys) in [
        ("nothing", "return 1", 0),
        ("incr", "return redis.call('INCR', KEYS[1])", 1),
        ("ten incrs", "for i = 1, 10 do redis.call('INCR', KEYS[1]) end", 1),
        ("list", "return {1, 2, 3}", 0),
    ] {
        let ready = house.engine.script(&house.scripts, body.as_bytes(), true).unwrap();
        let began = crate::base::clock::instant();
        let rounds = 200_000;
        let mut bridge = house.fake.clone();
        for _ in 0..rounds {
            out.buf.clear();
            let keys = [&b"key"[..]].into_iter().take(keys);
            house.engine.run(&ready, keys, std::iter::empty(), &mut bridge, &mut out);
        }
        println!("{name}: {} ns", began.elapsed().as_nanos() / rounds);
    }
}
