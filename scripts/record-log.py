#!/usr/bin/env python3
"""Records what a real redis-server puts into its append-only file: src/cmd/records.txt.

    scripts/record-log.py REDIS-SERVER PORT src/cmd/records.txt

Lines are `command => record; record`; the commands stay, the records are written anew. `later` lets so many
milliseconds pass. Words that are no plain text stand in quotes, with bytes in hexadecimal. A time (milliseconds) near
the present is written as its distance from it, `<100000>`.
"""
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

FAR_MS = 10_000_000


def words(line):
    for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line):
        word = quoted if not plain else plain
        yield re.sub(rb"\\x(..)", lambda m: bytes([int(m[1], 16)]), word.encode("latin-1"))


def encode(parts):
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


def reply(stream):
    line = stream.readline()
    kind, rest = line[:1], line[1:].strip()
    if kind == b"$" and int(rest) >= 0:
        stream.read(int(rest) + 2)
    if kind == b"*":
        for _ in range(max(int(rest), 0)):
            reply(stream)
    return line


def records(data):
    at, found = 0, []
    while at < len(data):
        end = data.index(b"\r\n", at)
        count, at = int(data[at + 1 : end]), end + 2
        parts = []
        for _ in range(count):
            end = data.index(b"\r\n", at)
            size = int(data[at + 1 : end])
            parts.append(data[end + 2 : end + 2 + size])
            at = end + 2 + size + 2
        found.append(parts)
    return found


def show(word, now_ms):
    if word.isdigit() and len(word) == 13 and abs(int(word) - now_ms) < FAR_MS:
        left_ms = int(word) - now_ms
        # What was a moment ago is the present.
        return "<%d>" % (0 if -100 < left_ms < 0 else (left_ms + 1) // 10 * 10)
    text = word.decode("latin-1")
    if re.fullmatch(r'[!#-~]+', text) and ";" not in text:
        return text
    return '"' + "".join(c if re.fullmatch(r"[ -~]", c) and c not in '"\\;' else "\\x%02x" % ord(c) for c in text) + '"'


def main():
    program, port, path = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        options = "--appendonly yes --appendfsync always --aof-use-rdb-preamble no --enable-debug-command yes --save".split()
        server = subprocess.Popen(
            [program, "--port", port, "--bind", "127.0.0.1", "--dir", folder, *options, ""],
            stdout=subprocess.DEVNULL,
        )
        try:
            record(int(port), folder, path)
        finally:
            server.terminate()
            server.wait()


def record(port, folder, path):
    for _ in range(100):
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            break
        except OSError:
            time.sleep(0.1)
    stream = connection.makefile("rb")

    def run(parts):
        connection.sendall(encode(parts))
        return reply(stream)

    run([b"DEBUG", b"SET-ACTIVE-EXPIRE", b"0"])
    directory = os.path.join(folder, "appendonlydir")
    [log] = [os.path.join(directory, name) for name in os.listdir(directory) if "incr" in name]
    at, lines, db = 0, [], 0
    for line in open(path, encoding="latin-1").read().splitlines():
        command = line.split(" =>")[0]
        if not command or command.startswith("#"):
            lines.append(line)
            continue
        parts = list(words(command))
        if parts[0] == b"later":
            time.sleep(int(parts[1]) / 1000)
            lines.append(command)
            continue
        now_ms = time.time_ns() // 1_000_000
        run(parts)
        with open(log, "rb") as file:
            file.seek(at)
            data = file.read()
        at += len(data)
        shown = []
        for found in records(data):
            if found[0] == b"SELECT":
                db = int(found[1])
                continue
            prefix = "%d:" % db if db and found[0] not in (b"MULTI", b"EXEC") else ""
            shown.append(prefix + " ".join(show(word, now_ms) for word in found))
        is_select = parts[0].lower() == b"select"
        lines.append(command if is_select else (command + " => " + "; ".join(shown)).rstrip())
    with open(path, "w", encoding="latin-1") as file:
        file.write("\n".join(lines) + "\n")


main()
