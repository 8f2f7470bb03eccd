"""Measures servers side by side and prints the tables of BENCHMARK.md. Called by scripts/bench.sh; see there for use.

Method, throughput: all servers of a family run at once, pinned to the same cores, and all but the one that is measured
stand still (SIGSTOP). Before each measurement the server is emptied and filled with exactly the family's keys (none,
for families that make them), which DBSIZE confirms; then it is left alone until it uses no processor time. Servers take
turns within each round, in the opposite order every other round; figures are medians over the rounds. After a run
DBSIZE (ZCARD, for the family with one large key; the sum of all sizes, where elements are taken) must be what random
keys lead to, so a generator that sends one key only, or a server that does not make or remove what it should, ends the
run; so does a read that finds nothing where every key holds something.

Families come in three groups, with a table each: strings, containers, and scripts (which are scripts, transactions and
channels). Each family has a number of keys of its own,
which is also what the generator's `-r` gets: fields, members and scores are drawn below the same number as keys. RPOP
and SPOP are not sent more often than half of what is there, so that nearly all of them find something.

A transaction counts as one request; its commands go out in one sequence, which only valkey-benchmark since 9.0 can
send. Subscribers of published messages are connections of this process, which throws away what they receive.

CPU per request is the time that all threads of the server spent on a core, as the scheduler counts it, over the
requests. It is the figure to trust when the load generator is the bottleneck, as it is with a fast server.

Method, memory: a fresh server for each case, resident bytes before and after filling. Strings: per key, less the raw
bytes of key and value. Containers: the whole growth, per key where there are many small ones and per element where
there is one large one, with the raw bytes beside it: servers keep numbers and stream IDs in fewer bytes than the raw
ones, so a difference would say little.

Only processes that were started here are stopped or ended.
"""
import argparse
import csv
import dataclasses
import hashlib
import math
import os
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

RANDOM = "__rand_int__"  # redis-benchmark writes twelve digits, drawn anew at each place
KEY = f"key:{RANDOM}"  # 16 bytes
MEMBER = f"member:{RANDOM}"
VALUE = "value-of-16-byte"
QUIET_MS = 2
# How far DBSIZE may be from what chance leads to, as a share of it.
TOLERANCE = 0.02
GROUPS = ("strings", "containers", "scripts")


def fail(text):
    sys.exit(f"bench: {text}")


# ---------------------------------------------------------------------------------------------------------- protocol

def encode(*words):
    """A command in the array form."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Connection:
    """One connection that understands the replies used here: all but those of RESP3."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.replies = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.replies.close()
        self.socket.close()

    def reply(self):
        line = self.replies.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if not kind or kind not in b":$*":
            raise RuntimeError(f"unexpected reply {line!r}")
        number = int(rest)
        if kind == b":":
            return number
        if number < 0:
            return None
        if kind == b"*":
            return [self.reply() for _ in range(number)]
        return self.replies.read(number + 2)[:-2]

    def ask(self, *words):
        self.socket.sendall(encode(*words))
        return self.reply()

    def fill(self, commands, batch=500):
        """Sends many commands, a batch at a time, and checks every reply; returns the replies."""
        pending, replies = [], []
        for command in commands:
            pending.append(command)
            if len(pending) == batch:
                replies += self.flush(pending)
                pending = []
        return replies + self.flush(pending)

    def flush(self, commands):
        self.socket.sendall(b"".join(commands))
        return [self.reply() for _ in commands]


class Subscribers:
    """Connections that are subscribed to a channel, and a thread that throws away what comes."""

    def __init__(self, port, channel, count):
        self.selector, self.ended, self.received_bytes = selectors.DefaultSelector(), False, 0
        self.connections = [Connection(port) for _ in range(count)]
        for connection in self.connections:
            connection.ask("SUBSCRIBE", channel)
            self.selector.register(connection.socket, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.drain)

    def drain(self):
        while not self.ended:
            for key, _ in self.selector.select(0.1):
                received = len(key.fileobj.recv(1 << 18))
                self.received_bytes += received
                if received == 0:
                    self.selector.unregister(key.fileobj)

    def __enter__(self):
        if self.connections:
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        if self.connections:
            self.thread.join()
        for connection in self.connections:
            connection.__exit__()


# ----------------------------------------------------------------------------------------------------------- servers

class Server:
    """A server process in a folder of its own."""

    def __init__(self, name, binary, cpus, options):
        self.name, self.binary = name, binary
        self.folder = tempfile.mkdtemp(prefix="perigee-bench-")
        self.port = free_port()
        command = [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder]
        command += ["--save", "", "--appendonly", "no", "--protected-mode", "no"]
        command += ["--shards", str(options.shards)] if name.startswith("perigee") else []
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(pinned(cpus) + command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        try:
            self.wait_until_ready()
        except BaseException:
            self.end()
            raise

    def wait_until_ready(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with Connection(self.port) as connection:
                    if connection.ask("PING") == "PONG":
                        return
            except (OSError, RuntimeError):
                time.sleep(0.05)
        with open(self.log, errors="replace") as log:
            raise RuntimeError(f"{self.name} ({self.binary}) did not start:\n{log.read()[-1500:]}")

    def stand_still(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        if self.process.poll() is None:
            self.go_on()
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def cpu_us(self):
        """Microseconds on a core, all threads."""
        total_ns = 0
        try:
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                with open(f"/proc/{self.pid}/task/{thread}/schedstat") as file:
                    total_ns += int(file.read().split()[0])
        except FileNotFoundError:
            # No such accounting in this kernel: ticks, which are coarser.
            with open(f"/proc/{self.pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1e6
        return total_ns / 1000

    def resident_bytes(self):
        with open(f"/proc/{self.pid}/status") as file:
            line = next(line for line in file if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def settle(self, seconds_max=20):
        """Waits until the server uses no processor time: what it does in the background is done."""
        deadline, before = time.monotonic() + seconds_max, self.cpu_us()
        while time.monotonic() < deadline:
            time.sleep(0.1)
            now = self.cpu_us()
            if now - before < QUIET_MS * 1000:
                return
            before = now


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pinned(cpus):
    return ["taskset", "-c", cpus] if cpus else []


# -------------------------------------------------------------------------------------------------------- throughput

@dataclasses.dataclass(frozen=True)
class Family:
    """A command that is measured."""

    command: list
    # What every key holds before, as a function of (key number, number of keys) that returns the words which follow the
    # first and the key, after the first: ["SET", value]. None: nothing is there.
    holds: object = None
    # How often the key placeholder stands in the command.
    keys: int = 1
    # What becomes of the number of keys: they "stay", are "made", or "go"; or of their elements: they are "taken".
    then: str = "stay"
    # How many keys there are, and below what the generator draws.
    space: int = 200_000
    # Where elements are taken: how many a key holds before, and the command that tells how many there are.
    parts: int = 0
    size: str = ""
    # Heavy commands are sent this many times less often.
    fewer: int = 1
    # What counts the keys after a run.
    counted: tuple = ("DBSIZE",)
    # A command that is sent before the run.
    first: tuple = ()
    # Connections that listen to CHANNEL.
    subscribers: int = 0
    group: str = "strings"


def text(value):
    return lambda number, space: ["SET", value]


def same(*words):
    """Every key holds the same."""
    return lambda number, space: list(words)


def spread(number, space, count):
    """`count` different numbers below `space`, as the generator writes them; other ones for other keys."""
    # No prime factor of a space divides the step, so that numbers repeat only after `space` of them.
    return [f"{(number * count + at) * 7919 % space:012}" for at in range(count)]


def members(count):
    return lambda number, space: ["SADD"] + [f"member:{digits}" for digits in spread(number, space, count)]


def scored(count):
    def words(number, space):
        digits = spread(number, space, count + 1)
        return ["ZADD"] + [word for at in range(count) for word in (digits[at + 1], f"member:{digits[at]}")]
    return words


def container(command, space, **more):
    """A family of the second group. Without something that is there before, it makes its keys."""
    return Family(command, space=space, group="containers", **({} if "holds" in more else {"then": "made"}), **more)


def whole(*command, **more):
    """A family of the third group."""
    return Family(list(command), group="scripts", **{"holds": text("1000"), "fewer": 4, **more})


SCRIPT = "return redis.call('INCR',KEYS[1])"
SHA = hashlib.sha1(SCRIPT.encode()).hexdigest()
CHANNEL = "news"
# Not all of the same kind, and all of them short.
TRANSACTION = ["MULTI", ";", "INCR", KEY, ";", "GET", KEY, ";", "SET", KEY, "1000", ";", "EXISTS", KEY, ";", "EXEC"]

FAMILIES = {
    "GET": Family(["GET", KEY], text(VALUE)),
    "SET": Family(["SET", KEY, VALUE], text(VALUE)),
    "SETEX": Family(["SET", KEY, VALUE, "EX", "1000"], text(VALUE)),
    "INCR": Family(["INCR", KEY], text("1000")),
    "APPEND": Family(["APPEND", KEY, "ab"], text(VALUE)),
    "EXISTS": Family(["EXISTS", KEY], text(VALUE)),
    "EXPIRE": Family(["EXPIRE", KEY, "1000"], text(VALUE)),
    "DEL": Family(["DEL", KEY], text(VALUE), then="go"),
    "MGET10": Family(["MGET"] + [KEY] * 10, text(VALUE), keys=10, fewer=4),
    "MSET10": Family(["MSET"] + [KEY, VALUE] * 10, text(VALUE), keys=10, fewer=4),
    "SETNEW": Family(["SET", KEY, VALUE], then="made"),
    "PING": Family(["PING"], text(VALUE), keys=0),
    "LPUSH": container(["LPUSH", KEY, VALUE], 20_000),
    "RPOP": container(["RPOP", KEY], 20_000, holds=same("LPUSH", *[VALUE] * 100), then="taken",
                      parts=100, size="LLEN"),
    "LRANGE": container(["LRANGE", KEY, "0", "99"], 500, holds=same("RPUSH", *[VALUE] * 400), fewer=4),
    "SADD": container(["SADD", KEY, MEMBER], 20_000),
    # Members are drawn like keys, so one in a thousand is there.
    "SISMEMBER": container(["SISMEMBER", KEY, MEMBER], 20_000, holds=members(20)),
    "SPOP": container(["SPOP", KEY], 20_000, holds=members(30), then="taken", parts=30, size="SCARD"),
    "HSET": container(["HSET", KEY, f"field:{RANDOM}", VALUE], 20_000),
    "HGET": container(["HGET", KEY, "f2"], 50_000, holds=same("HSET", "f1", VALUE, "f2", VALUE, "f3", VALUE)),
    "HGETALL": container(["HGETALL", KEY], 20_000, fewer=4,
                         holds=same("HSET", *[word for at in range(10) for word in (f"f{at}", VALUE)])),
    "HINCRBY": container(["HINCRBY", KEY, "f", "1"], 50_000),
    "ZADD": container(["ZADD", KEY, RANDOM, MEMBER], 20_000),
    "ZADDBIG": container(["ZADD", "bigz", RANDOM, MEMBER], 500_000, counted=("ZCARD", "bigz")),
    "ZSCORE": container(["ZSCORE", KEY, "member:1"], 50_000,
                        holds=lambda number, space: ["ZADD", spread(number, space, 1)[0], "member:1"]),
    "ZRANGE": container(["ZRANGE", KEY, "0", "9", "WITHSCORES"], 2_000, holds=scored(100)),
    "ZINCRBY": container(["ZINCRBY", KEY, "1", "m"], 50_000),
    "XADD": container(["XADD", KEY, "*", "f", VALUE], 1_000),
    "SETBIT": container(["SETBIT", KEY, "77", "1"], 50_000),
    "PFADD": container(["PFADD", KEY, f"e:{RANDOM}"], 2_000),
    "GEOADD": container(["GEOADD", KEY, "13.361389", "38.115556", f"m:{RANDOM}"], 2_000, fewer=4),
    "EVAL": whole("EVAL", SCRIPT, "1", KEY),
    "EVALSHA": whole("EVALSHA", SHA, "1", KEY, first=("SCRIPT", "LOAD", SCRIPT)),
    "MULTI4": whole(*TRANSACTION, keys=4),
    "PUBLISH": whole("PUBLISH", CHANNEL, VALUE, keys=0, fewer=1),
    "PUBLISH1": whole("PUBLISH", CHANNEL, VALUE, keys=0, fewer=2, subscribers=1),
    "PUBLISH50": whole("PUBLISH", CHANNEL, VALUE, keys=0, fewer=10, subscribers=50),
}
# Measured only when they are named.
NAMED_ONLY = ("SETNEW", "PING")


@dataclasses.dataclass
class Run:
    """One measurement."""

    requests_per_s: float
    cpu_us: float


def prepare(server, family, keys):
    """Empties and fills a server."""
    def write(number):
        first, *rest = family.holds(number, keys)
        return encode(first, f"key:{number:012}", *rest)

    wanted = keys if family.holds else 0
    with Connection(server.port) as connection:
        connection.ask("FLUSHALL", "SYNC")
        connection.fill(write(number) for number in range(wanted))
        found = connection.ask("DBSIZE")
        if family.first:
            connection.ask(*family.first)
    if found != wanted:
        raise RuntimeError(f"{server.name} holds {found} keys after filling, not {wanted}")
    server.settle()


def commands_of(family):
    """The commands of a sequence."""
    command = []
    for word in family.command:
        if word == ";":
            yield command
            command = []
        else:
            command.append(word)
    yield command


def check_keys(server, name, family, keys, requests):
    """What is there after a run, against what random keys lead to."""
    with Connection(server.port) as connection:
        if family.then == "taken":
            found = sum(connection.fill(encode(family.size, f"key:{number:012}") for number in range(keys)))
        else:
            found = connection.ask(*family.counted)
        # The generator stops at errors, but does not look at what was found.
        for command in commands_of(family):
            reply = connection.ask(*[word.replace(RANDOM, "0" * 12) for word in command])
    left = keys * math.exp(-requests * family.keys / keys)
    wanted = {"stay": keys, "made": keys - left, "go": left, "taken": keys * family.parts - requests}[family.then]
    # Two square roots are over six standard deviations: chance weighs more where there are few keys.
    allowed = 0 if family.then == "stay" else max(TOLERANCE * keys, 2 * math.sqrt(keys))
    if abs(found - wanted) > allowed:
        things = "elements" if family.then == "taken" else "keys"
        raise RuntimeError(f"{server.name} holds {found} {things} after {name}, not about {wanted:.0f}")
    nothing = reply is None or (isinstance(reply, list) and all(part is None for part in reply))
    if family.then == "stay" and nothing:
        raise RuntimeError(f"{server.name} found nothing for {name}")


def generate(options, server, family, depth, requests, keys):
    """Runs the load generator; returns requests per second. It counts each command of a sequence."""
    commands = len(list(commands_of(family)))
    command = pinned(options.client_cpus) + [options.bench, "-h", "127.0.0.1", "-p", str(server.port), "--csv"]
    command += ["-n", str(requests * commands), "-c", str(options.clients), "-P", str(depth), "-r", str(keys)]
    done = subprocess.run(command + family.command, capture_output=True, text=True, timeout=600)
    rows = [row for row in csv.reader(done.stdout.splitlines()) if len(row) > 1 and row[0] != "test"]
    if done.returncode != 0 or not rows:
        raise RuntimeError(f"{options.bench} failed: {done.stdout[-500:]}{done.stderr[-500:]}")
    return float(rows[-1][1]) / commands


def measure(options, server, name, depth):
    family = FAMILIES[name]
    keys = options.keys or family.space
    requests = (options.requests or {1: 100_000}.get(depth, 400_000 if depth < 32 else 1_000_000)) // family.fewer
    if family.then == "taken":
        requests = min(requests, keys * family.parts // 2)
    prepare(server, family, keys)
    with Subscribers(server.port, CHANNEL, family.subscribers) as subscribers:
        before_us = server.cpu_us()
        rate = generate(options, server, family, depth, requests, keys)
        server.settle()
        used_us = server.cpu_us() - before_us
    if subscribers.received_bytes < requests * family.subscribers * len(VALUE):
        raise RuntimeError(f"{server.name} left messages out: {subscribers.received_bytes} bytes for {requests}")
    check_keys(server, name, family, keys, requests)
    return Run(rate, used_us / requests)


def measure_family(options, name):
    """Returns {(depth, server): median run}."""
    runs, servers = {}, []
    try:
        for title, binary in options.servers:
            servers.append(Server(title, binary, options.server_cpus, options))
            servers[-1].stand_still()
        for depth in options.depths:
            for turn in range(options.rounds):
                for server in servers if turn % 2 == 0 else servers[::-1]:
                    server.go_on()
                    run = measure(options, server, name, depth)
                    server.stand_still()
                    runs.setdefault((depth, server.name), []).append(run)
                    print(f"bench: {name} depth {depth} {server.name}: {run.requests_per_s:.0f}/s "
                          f"{run.cpu_us:.3f} us", file=sys.stderr, flush=True)
    finally:
        for server in servers:
            server.end()

    def median(list_of, field):
        return statistics.median(getattr(run, field) for run in list_of)

    return {at: Run(median(all_, "requests_per_s"), median(all_, "cpu_us")) for at, all_ in runs.items()}


def spaces(options, names):
    """How many keys the families have, in words."""
    by_space = {}
    for name in names:
        by_space.setdefault(options.keys or FAMILIES[name].space, []).append(name)
    if len(by_space) == 1:
        return f"{next(iter(by_space)):,} keys of 16 bytes"
    return "Keys of 16 bytes: " + "; ".join(f"{space:,} for {', '.join(of)}" for space, of in by_space.items())


def throughput(options, names):
    ours, *peers = [title for title, _ in options.servers]
    head = ["command", "depth", f"{ours} req/s", f"{ours} CPU µs/req"]
    for peer in peers:
        head += [f"{peer} req/s", f"{peer} CPU µs/req", f"req/s of {peer}'s", f"CPU of {peer}'s"]
    print(f"{spaces(options, names)}.\n\n{options.clients} connections, {options.rounds} round(s), "
          f"{options.shards} shard(s); server on core(s) {options.server_cpus or 'any'}, load generator on "
          f"{options.client_cpus or 'any'}.")
    if "ZADDBIG" in names:
        print("ZADDBIG has one key; its number is that of the members.")
    print()
    print_row(head)
    print_row(["---"] + ["---:"] * (len(head) - 1))
    for name in names:
        medians = measure_family(options, name)
        for depth in options.depths:
            mine = medians[depth, ours]
            row = [name, depth, f"{mine.requests_per_s:,.0f}", f"{mine.cpu_us:.2f}"]
            for peer in peers:
                theirs = medians[depth, peer]
                row += [f"{theirs.requests_per_s:,.0f}", f"{theirs.cpu_us:.2f}",
                        f"{mine.requests_per_s / theirs.requests_per_s:.2f}", f"{mine.cpu_us / theirs.cpu_us:.2f}"]
            print_row(row)
    print()


# ------------------------------------------------------------------------------------------------------------ memory

@dataclasses.dataclass(frozen=True)
class Case:
    """A kind of value. `write(number)`: the command that makes item `number`; `raw`: bytes of its value or element."""

    write: object
    raw: int
    # Items; 0: by size.
    count: int = 0
    # What counts the items: keys, or the elements of one large key.
    counted: tuple = ("DBSIZE",)
    group: str = "strings"

    def raw_bytes(self):
        return self.raw + (len(key(0)) if self.counted == ("DBSIZE",) else 0)


def key(number):
    return b"user:%011d" % number


def sized(size, *more):
    """Values of `size` bytes that differ from key to key."""
    def write(number):
        # Not digits only, which would be kept as a number.
        value = (b"%d" % (number % 10 ** (min(size, 9) - 1))).ljust(size, b"x")
        return encode(b"SET", key(number), value, *more)
    return Case(write, size)


def small(command, raw, words):
    """Many small containers, filled by one command each: `words(number)` follow the key."""
    return Case(lambda number: encode(command, key(number), *words(number)), raw, 200_000, group="containers")


def big(command, name, raw, words, counts, count=1_000_000):
    """One large container, filled an element at a time."""
    return Case(lambda number: encode(command, name, *words(number)), raw, count, (counts, name), "containers")


def pairs(count, pair):
    return [word for at in range(count) for word in pair(at)]


CASES = {
    **{str(size): sized(size) for size in (3, 8, 32, 64, 100, 128, 200, 256, 700, 1024, 1500)},
    "integer": Case(lambda number: encode(b"SET", key(number), number * 7919), 8),
    "64+TTL": sized(64, b"EX", b"100000"),
    "hash5": small("HSET", 5 * (6 + 11),
                   lambda number: pairs(5, lambda at: (f"field{at}", f"value{number % 1_000_000:06}"))),
    "hashbig": big("HSET", "bighash", 16 + 11,
                   lambda number: (f"field:{number:010}", f"value{number % 1_000_000:06}"), "HLEN"),
    "list10": small("RPUSH", 10 * 12, lambda number: [f"item{number + at:08}" for at in range(10)]),
    "listbig": big("RPUSH", "biglist", 16, lambda number: [f"item{number:012}"], "LLEN"),
    # Four bytes hold every number.
    "set10int": small("SADD", 10 * 4, lambda number: [number + at * 31 for at in range(10)]),
    "set10str": small("SADD", 10 * 12, lambda number: [f"member{number + at:06}" for at in range(10)]),
    "setbig": big("SADD", "bigset", 16, lambda number: [f"member:{number:09}"], "SCARD"),
    # A score is eight bytes.
    "zset10": small("ZADD", 10 * (8 + 12),
                    lambda number: pairs(10, lambda at: (number + at, f"member{number + at:06}"))),
    "zsetbig": big("ZADD", "bigz", 8 + 16, lambda number: (number * 37 % 1_000_003, f"member:{number:09}"), "ZCARD"),
    # The ID is sixteen bytes and the two values are two each; the field names are the same everywhere and not counted.
    "stream": big("XADD", "stream", 16 + 2 * 2, lambda number: ("*", "temp", number % 100, "hum", number % 77), "XLEN",
                  500_000),
}


def items_of(case, options):
    """Many enough that pages and segments do not matter, few enough for a small machine."""
    return options.memory_keys or case.count or max(100_000, min(1_000_000, 200_000_000 // (case.raw + 100)))


def steady_bytes(server):
    """Resident bytes once they stay the same."""
    server.settle()
    last, same = server.resident_bytes(), 0
    for _ in range(40):
        time.sleep(0.25)
        now = server.resident_bytes()
        same = same + 1 if abs(now - last) < 64 * 1024 else 0
        last = now
        if same == 4:
            break
    return last


def bytes_per_item(options, title, binary, case):
    """(resident bytes per key or element, resident bytes of the empty server)."""
    server, count = Server(title, binary, options.server_cpus, options), items_of(case, options)
    try:
        idle = steady_bytes(server)
        with Connection(server.port) as connection:
            connection.fill(case.write(number) for number in range(count))
            found = connection.ask(*case.counted)
        if found != count:
            raise RuntimeError(f"{title} holds {found} keys or elements, not {count}")
        return (steady_bytes(server) - idle) / count, idle
    finally:
        server.end()


def memory(options, names):
    titles = [title for title, _ in options.servers]
    whole = CASES[names[0]].group == "containers"
    if whole:
        print("Resident bytes per key (of 16 bytes) or, where one key holds all, per element; raw bytes are in them.\n")
        head = ["value", "keys or elements", "per", "raw bytes"]
    else:
        print("Resident bytes per key above the raw bytes of key (16) and value.\n")
        head = ["value bytes", "keys"]
    print_row(head + titles + [f"of {title}'s" for title in titles[1:]])
    print_row(["---"] + ["---:"] * (len(head) + 2 * len(titles) - 2))
    idle = {title: [] for title in titles}
    for name in names:
        case, found = CASES[name], []
        for title, binary in options.servers:
            resident, empty = bytes_per_item(options, title, binary, case)
            found.append(resident if whole else resident - case.raw_bytes())
            idle[title].append(empty)
            print(f"bench: memory {name} {title}: {found[-1]:.1f}", file=sys.stderr, flush=True)
        row = [name, f"{items_of(case, options):,}"]
        row += ["key" if case.counted == ("DBSIZE",) else "element", case.raw_bytes()] if whole else []
        print_row(row + [f"{each:.1f}" for each in found] + [f"{found[0] / each:.2f}" for each in found[1:]])
    medians = [statistics.median(idle[title]) for title in titles]
    row = ["empty server, MB"] + [""] * (len(head) - 1) + [f"{value / 1e6:.1f}" for value in medians]
    print_row(row + [f"{medians[0] / value:.2f}" for value in medians[1:]])
    print()


# -------------------------------------------------------------------------------------------------------------- main

def print_row(cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def describe_machine(options):
    with open("/proc/cpuinfo") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    with open("/proc/meminfo") as file:
        memory_gb = int(file.readline().split()[1]) / 1e6
    print(f"- machine: {models[0] if models else os.uname().machine}, {os.cpu_count()} cores, {memory_gb:.0f} GB, "
          f"Linux {os.uname().release}")
    for title, binary in options.servers:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True)
        print(f"- {title}: {(done.stdout or 'unknown').strip().splitlines()[0]}")
    done = subprocess.run([options.bench, "--version"], capture_output=True, text=True)
    print(f"- load generator: {(done.stdout or options.bench).strip()}")
    print(f"- date: {time.strftime('%Y-%m-%d', time.gmtime())}\n", flush=True)


def pick(asked, known, what):
    """Names for a list of names and groups, each once."""
    names = []
    for word in filter(None, asked.split(",")):
        if word == "all" or word in GROUPS:
            names += [name for name in known if word in ("all", known[name].group) and name not in NAMED_ONLY]
        elif word in known:
            names.append(word)
        else:
            fail(f"no such {what}: {word} (there are all, {', '.join(GROUPS)}, {', '.join(known)})")
    return list(dict.fromkeys(names))


def tables(names, known):
    """The names by group: a table each."""
    by_group = [[name for name in names if known[name].group == group] for group in GROUPS]
    return [table for table in by_group if table]


def parse_options():
    cores = sorted(os.sched_getaffinity(0))
    one_each = len(cores) > 1 and shutil.which("taskset")
    parser = argparse.ArgumentParser(prog="scripts/bench.sh", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    groups = f"a list of: all, {', '.join(GROUPS)},"
    add("--server", action="append", required=True, help="NAME=BINARY; the first is compared with the others")
    add("--bench", default="redis-benchmark", help="load generator")
    add("--mode", choices=["throughput", "memory", "all"], default="all", help="what to measure")
    add("--families", default="all", help=f"{groups} {', '.join(FAMILIES)}; {' and '.join(NAMED_ONLY)} are in no group")
    add("--depths", default="1,8,64", help="commands per pipeline")
    add("--rounds", type=int, default=3, help="measurements of each kind")
    add("--requests", type=int, default=0, help="per measurement; 0: by depth")
    add("--keys", type=int, default=0, help="keys that are there or made, also the range of members; 0: by family")
    add("--clients", type=int, default=50, help="connections")
    add("--shards", type=int, default=1, help="shards of perigee")
    add("--server-cpus", default=str(cores[0]) if one_each else "", help="as taskset takes them; empty: any")
    add("--client-cpus", default=str(cores[1]) if one_each else "", help="as taskset takes them; empty: any")
    add("--cases", default="all", help=f"values of the memory mode; {groups} {', '.join(CASES)}")
    add("--memory-keys", type=int, default=0, help="keys (or elements) of the memory mode; 0: by case")
    options = parser.parse_args()
    options.servers = [tuple(server.split("=", 1)) for server in options.server]
    for server in options.servers:
        if len(server) != 2 or not (os.path.exists(server[1]) or shutil.which(server[1])):
            fail(f"not NAME=BINARY, or no such binary: {'='.join(server)}")
    if len({title for title, _ in options.servers}) < len(options.servers):
        fail("every server needs a name of its own")
    options.families = pick(options.families, FAMILIES, "family")
    options.cases = pick(options.cases, CASES, "case")
    if 0 < options.keys < 1000:
        fail("fewer than 1000 keys: too few to draw members from")
    options.depths = [int(depth) for depth in options.depths.split(",")]
    return options


def main():
    # Ended from outside, the servers are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: ended"))
    options = parse_options()
    describe_machine(options)
    try:
        if options.mode in ("throughput", "all"):
            for names in tables(options.families, FAMILIES):
                throughput(options, names)
        if options.mode in ("memory", "all"):
            for names in tables(options.cases, CASES):
                memory(options, names)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        fail(error)


if __name__ == "__main__":
    main()
