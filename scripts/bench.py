"""Measures servers side by side and prints the tables of BENCHMARK.md. Called by scripts/bench.sh; see there for use.

Method, throughput: all servers of a family run at once, pinned to the same cores, and all but the one that is measured
stand still (SIGSTOP). Before each measurement the server is emptied and filled with exactly KEYS keys, which DBSIZE
confirms; then it is left alone until it uses no processor time. Servers take turns within each round, in the opposite
order every other round; figures are medians over the rounds. After a run DBSIZE must be what random keys lead to, so a
generator that sends one key only, or a server that drops writes, ends the run.

CPU per request is the time that all threads of the server spent on a core, as the scheduler counts it, over the
requests. It is the figure to trust when the load generator is the bottleneck, as it is with a fast server.

Method, memory: a fresh server for each case, resident bytes before and after filling, less the raw bytes of keys and
values, per key.

Only processes that were started here are stopped or ended.
"""
import argparse
import csv
import dataclasses
import math
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

KEY = "key:__rand_int__"  # redis-benchmark writes twelve digits: 16 bytes
VALUE = "value-of-16-byte"
QUIET_MS = 2
# How far DBSIZE may be from what chance leads to, as a share of it.
TOLERANCE = 0.02


def fail(text):
    sys.exit(f"bench: {text}")


# ---------------------------------------------------------------------------------------------------------- protocol

def encode(*words):
    """A command in the array form."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Connection:
    """One connection that understands the replies used here: status, error, integer."""

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
        if not line or line[:1] not in b"+:":
            raise RuntimeError(f"unexpected reply {line!r}")
        return int(line[1:]) if line[:1] == b":" else line[1:].decode()

    def ask(self, *words):
        self.socket.sendall(encode(*words))
        return self.reply()

    def fill(self, commands, batch=500):
        """Sends many commands, a batch at a time, and checks every reply."""
        pending = []
        for command in commands:
            pending.append(command)
            if len(pending) == batch:
                self.flush(pending)
                pending = []
        self.flush(pending)

    def flush(self, commands):
        self.socket.sendall(b"".join(commands))
        for _ in commands:
            self.reply()


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
    # What every key holds before; None: nothing is there.
    holds: str = VALUE
    # How often the key placeholder stands in the command.
    keys: int = 1
    # What becomes of the number of keys: they "stay", are "made", or "go".
    then: str = "stay"


FAMILIES = {
    "GET": Family(["GET", KEY]),
    "SET": Family(["SET", KEY, VALUE]),
    "SETEX": Family(["SET", KEY, VALUE, "EX", "1000"]),
    "INCR": Family(["INCR", KEY], holds="1000"),
    "APPEND": Family(["APPEND", KEY, "ab"]),
    "EXISTS": Family(["EXISTS", KEY]),
    "EXPIRE": Family(["EXPIRE", KEY, "1000"]),
    "DEL": Family(["DEL", KEY], then="go"),
    "MGET10": Family(["MGET"] + [KEY] * 10, keys=10),
    "MSET10": Family(["MSET"] + [KEY, VALUE] * 10, keys=10),
    "SETNEW": Family(["SET", KEY, VALUE], holds=None, then="made"),
    "PING": Family(["PING"], keys=0),
}
DEFAULT_FAMILIES = "GET,SET,SETEX,INCR,APPEND,EXISTS,EXPIRE,DEL,MGET10,MSET10"


@dataclasses.dataclass
class Run:
    """One measurement."""

    requests_per_s: float
    cpu_us: float


def prepare(server, family, keys):
    """Empties and fills a server."""
    with Connection(server.port) as connection:
        connection.ask("FLUSHALL", "SYNC")
        if family.holds is not None:
            connection.fill(encode("SET", f"key:{number:012}", family.holds) for number in range(keys))
        found, wanted = connection.ask("DBSIZE"), keys if family.holds is not None else 0
    if found != wanted:
        raise RuntimeError(f"{server.name} holds {found} keys after filling, not {wanted}")
    server.settle()


def check_keys(server, name, family, keys, requests):
    """DBSIZE after a run, against what random keys lead to."""
    with Connection(server.port) as connection:
        found = connection.ask("DBSIZE")
    hit = keys * (1 - math.exp(-requests * family.keys / keys))
    wanted = {"stay": keys, "made": hit, "go": keys - hit}[family.then]
    if abs(found - wanted) > TOLERANCE * keys:
        raise RuntimeError(f"{server.name} holds {found} keys after {name}, not about {wanted:.0f}")


def generate(options, server, family, depth, requests):
    """Runs the load generator; returns requests per second."""
    command = pinned(options.client_cpus) + [options.bench, "-h", "127.0.0.1", "-p", str(server.port), "--csv"]
    command += ["-n", str(requests), "-c", str(options.clients), "-P", str(depth), "-r", str(options.keys)]
    done = subprocess.run(command + family.command, capture_output=True, text=True, timeout=600)
    rows = [row for row in csv.reader(done.stdout.splitlines()) if len(row) > 1 and row[0] != "test"]
    if done.returncode != 0 or not rows:
        raise RuntimeError(f"{options.bench} failed: {done.stdout[-500:]}{done.stderr[-500:]}")
    return float(rows[-1][1])


def measure(options, server, name, depth):
    family = FAMILIES[name]
    requests = options.requests or {1: 100_000}.get(depth, 400_000 if depth < 32 else 1_000_000)
    if family.keys > 1:
        requests //= 4
    prepare(server, family, options.keys)
    before_us = server.cpu_us()
    rate = generate(options, server, family, depth, requests)
    used_us = server.cpu_us() - before_us
    check_keys(server, name, family, options.keys, requests)
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


def throughput(options):
    ours, *peers = [title for title, _ in options.servers]
    head = ["command", "depth", f"{ours} req/s", f"{ours} CPU µs/req"]
    for peer in peers:
        head += [f"{peer} req/s", f"{peer} CPU µs/req", f"req/s of {peer}'s", f"CPU of {peer}'s"]
    print(f"{options.keys} keys of 16 bytes, {options.clients} connections, {options.rounds} rounds, "
          f"{options.shards} shard(s); server on core(s) {options.server_cpus or 'any'}, load generator on "
          f"{options.client_cpus or 'any'}.\n")
    print_row(head)
    print_row(["---"] + ["---:"] * (len(head) - 1))
    for name in options.families:
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
    """A kind of value. `write(number)`: the command that makes key `number`; `raw`: bytes of its value."""

    write: object
    raw: int


def key(number):
    return b"user:%011d" % number


def sized(size, *more):
    """Values of `size` bytes that differ from key to key."""
    def write(number):
        # Not digits only, which would be kept as a number.
        value = (b"%d" % (number % 10 ** (min(size, 9) - 1))).ljust(size, b"x")
        return encode(b"SET", key(number), value, *more)
    return Case(write, size)


CASES = {
    **{str(size): sized(size) for size in (3, 8, 32, 64, 100, 128, 200, 256, 700, 1024, 1500)},
    "integer": Case(lambda number: encode(b"SET", key(number), number * 7919), 8),
    "64+TTL": sized(64, b"EX", b"100000"),
}


def keys_of(case, options):
    """Many enough that pages and segments do not matter, few enough for a small machine."""
    return options.memory_keys or max(100_000, min(1_000_000, 200_000_000 // (case.raw + 100)))


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


def bytes_per_key(options, title, binary, case):
    """(bytes per key above the raw ones, resident bytes of the empty server)."""
    server, count = Server(title, binary, options.server_cpus, options), keys_of(case, options)
    try:
        idle = steady_bytes(server)
        with Connection(server.port) as connection:
            connection.fill(case.write(number) for number in range(count))
            found = connection.ask("DBSIZE")
        if found != count:
            raise RuntimeError(f"{title} holds {found} keys, not {count}")
        return (steady_bytes(server) - idle) / count - len(key(0)) - case.raw, idle
    finally:
        server.end()


def memory(options):
    titles = [title for title, _ in options.servers]
    print("Resident bytes per key above the raw bytes of key (16) and value.\n")
    head = ["value bytes", "keys"] + [title for title in titles] + [f"of {title}'s" for title in titles[1:]]
    print_row(head)
    print_row(["---"] + ["---:"] * (len(head) - 1))
    idle = {title: [] for title in titles}
    for name in options.cases:
        above = []
        for title, binary in options.servers:
            extra, empty = bytes_per_key(options, title, binary, CASES[name])
            above.append(extra)
            idle[title].append(empty)
            print(f"bench: memory {name} {title}: {extra:.1f}", file=sys.stderr, flush=True)
        row = [name, f"{keys_of(CASES[name], options):,}"] + [f"{extra:.1f}" for extra in above]
        print_row(row + [f"{above[0] / extra:.2f}" for extra in above[1:]])
    medians = [statistics.median(idle[title]) for title in titles]
    row = ["empty server, MB", ""] + [f"{value / 1e6:.1f}" for value in medians]
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


def pick(text, known, what):
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            fail(f"no such {what}: {name} (there are {', '.join(known)})")
    return names


def parse_options():
    cores = sorted(os.sched_getaffinity(0))
    one_each = len(cores) > 1 and shutil.which("taskset")
    parser = argparse.ArgumentParser(prog="scripts/bench.sh", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--server", action="append", required=True, help="NAME=BINARY; the first is compared with the others")
    add("--bench", default="redis-benchmark", help="load generator")
    add("--mode", choices=["throughput", "memory", "all"], default="all", help="what to measure")
    add("--families", default=DEFAULT_FAMILIES, help="also: SETNEW, PING")
    add("--depths", default="1,8,64", help="commands per pipeline")
    add("--rounds", type=int, default=3, help="measurements of each kind")
    add("--requests", type=int, default=0, help="per measurement; 0: by depth")
    add("--keys", type=int, default=200_000, help="keys that are there")
    add("--clients", type=int, default=50, help="connections")
    add("--shards", type=int, default=1, help="shards of perigee")
    add("--server-cpus", default=str(cores[0]) if one_each else "", help="as taskset takes them; empty: any")
    add("--client-cpus", default=str(cores[1]) if one_each else "", help="as taskset takes them; empty: any")
    add("--cases", default=",".join(CASES), help="values of the memory mode")
    add("--memory-keys", type=int, default=0, help="keys of the memory mode; 0: by size")
    options = parser.parse_args()
    options.servers = [tuple(server.split("=", 1)) for server in options.server]
    for server in options.servers:
        if len(server) != 2 or not (os.path.exists(server[1]) or shutil.which(server[1])):
            fail(f"not NAME=BINARY, or no such binary: {'='.join(server)}")
    if len({title for title, _ in options.servers}) < len(options.servers):
        fail("every server needs a name of its own")
    options.families = pick(options.families, FAMILIES, "family")
    options.cases = pick(options.cases, CASES, "case")
    options.depths = [int(depth) for depth in options.depths.split(",")]
    return options


def main():
    # Ended from outside, the servers are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: ended"))
    options = parse_options()
    describe_machine(options)
    try:
        if options.mode in ("throughput", "all"):
            throughput(options)
        if options.mode in ("memory", "all"):
            memory(options)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        fail(error)


if __name__ == "__main__":
    main()
