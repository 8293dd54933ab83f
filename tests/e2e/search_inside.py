#!/usr/bin/python3
"""Runs inside a sandbox and looks for a secret in all that can be read there: files, and every /proc.

    search_inside.py FLIPPED

FLIPPED is the secret in hex with every bit turned over, so that the search does not find itself; canary.py lies
beside it. Exit code 1 and a line "FOUND place: form" for each place.
"""

import os
import sys

import canary

READ_LIMIT_BYTES = 64 * 1024 * 1024
# The host's own system, read-only, which no run writes to; and what is no file.
NOT_SEARCHED = ("proc", "sys", "dev", "usr", "lib", "lib32", "lib64", "libx32", "bin", "sbin")

found = []


def flip(data):
    return bytes(byte ^ 0xFF for byte in data)


# Kept flipped too; one at a time is turned back.
needles = {name: flip(needle) for name, needle in canary.forms(flip(bytes.fromhex(sys.argv[1]))).items()}


def look(place, data):
    for name, needle in needles.items():
        if flip(needle) in data:
            found.append(f"{place}: {name}")


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(READ_LIMIT_BYTES)
    except OSError:
        return b""


def look_at_memory(pid):
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for line in maps:
                start, end = (int(x, 16) for x in line.split()[0].split("-"))
                look(f"/proc/{pid}/mem", os.pread(memory.fileno(), min(end - start, READ_LIMIT_BYTES), start))
    except (OSError, OverflowError):
        pass


def look_at_processes():
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    for pid in pids:
        for name in ("environ", "cmdline", "comm", "status", "mountinfo"):
            look(f"/proc/{pid}/{name}", read(f"/proc/{pid}/{name}"))
        if pid != str(os.getpid()):
            look_at_memory(pid)
    return len(pids)


def look_at_files():
    seen = 0
    for top in sorted(os.listdir("/")):
        if top in NOT_SEARCHED:
            continue
        for folder, _, files in os.walk("/" + top):
            for path in (os.path.join(folder, name) for name in files):
                if os.path.isfile(path):
                    seen += 1
                    look(path, os.fsencode(path) + read(path))
    return seen


print("processes", look_at_processes())
print("files", look_at_files())
for item in found:
    print("FOUND", item)
sys.exit(1 if found else 0)
