"""Runs in a sandbox: floods in every way that an ordinary program has, until the file .go-stop is there.

`flood_inside.py KIND ROUNDS`: says .at-KIND once it has done ROUNDS, and goes on.
"""

import os
import pathlib
import random
import socket
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
CHECK_EVERY = 200
HELD = 700  # descriptors that a flood of open connections keeps
DOOR_PORT = 40443


def random_address():
    return f"{random.randrange(1, 224)}.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(1, 255)}"


def open_socket(kind=socket.SOCK_STREAM):
    made = socket.socket(socket.AF_INET, kind)
    made.setblocking(False)
    return made


def half_open(_):
    """Given up before it is answered."""
    with open_socket() as client:
        client.connect_ex((random_address(), random.randrange(1, 65536)))


def connect(_):
    """Refused by the gate."""
    with socket.socket() as client:
        client.settimeout(0.2)
        client.connect_ex((random_address(), random.randrange(1024, 65536)))


def clear_text(_):
    with socket.socket() as client:
        client.settimeout(0.2)
        if client.connect_ex((random_address(), 80)) == 0:
            client.send(b"GET / HTTP/1.1\r\nHost: x.test\r\n\r\n")


def udp(_):
    with open_socket(socket.SOCK_DGRAM) as client:
        client.sendto(b"x", (random_address(), random.randrange(1024, 65536)))


def dns(_):
    with open_socket(socket.SOCK_DGRAM) as client:
        name = os.urandom(8).hex().encode()
        client.sendto(struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + bytes([len(name)]) + name + b"\x04test\0\0\1\0\1",
                      (random_address(), 53))


def wildcard(_):
    """A new name under a wildcard that the policy allows, each time."""
    with open_socket(socket.SOCK_DGRAM) as client:
        name = os.urandom(8).hex().encode()
        client.sendto(struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + bytes([len(name)]) + name
                      + b"\x04wild\x04test\0\0\1\0\1", (random_address(), 53))


def door(_):
    with open_socket() as client:
        client.connect_ex(("127.0.0.1", DOOR_PORT))


def idle(kept):
    """Open connections that say nothing, more than the gate serves at once."""
    kept.append(open_socket())
    kept[-1].connect_ex((random_address(), 443))
    if len(kept) > HELD:
        kept.pop(0).close()


def slowloris(kept):
    """Open connections whose requests come byte by byte, and never to their end."""
    if len(kept) <= HELD:
        kept.append(open_socket())
        kept[-1].connect_ex((random_address(), random.choice([80, 443])))
        return
    slow = kept.pop(0)
    try:
        slow.send(b"G")
    except BlockingIOError:
        pass  # nobody has accepted it yet
    except OSError:
        slow.close()
        return
    kept.append(slow)


def loopback(kept):
    """The sandbox with itself: a listener whose backlog is full."""
    if not kept:
        kept.append(socket.create_server(("127.0.0.1", 0), backlog=1))
    kept.append(open_socket())
    kept[-1].connect_ex(kept[0].getsockname())
    if len(kept) > HELD:
        kept.pop(1).close()


def main():
    kind, rounds = sys.argv[1], int(sys.argv[2])
    kept = []
    done = 0
    while not (HERE / ".go-stop").exists():
        for _ in range(CHECK_EVERY):
            try:
                globals()[kind](kept)
            except OSError:
                pass  # the limits at work
        done += CHECK_EVERY
        if done >= rounds:
            (HERE / f".at-{kind}").touch()


main()
