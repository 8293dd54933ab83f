#!/usr/bin/python3
"""lookups.py LOG COMMAND...: runs COMMAND beside a DNS server on 127.0.0.1:53 that knows no name and writes down, one a line,
each that it is asked for. For a network namespace of its own."""

import pathlib
import socket
import subprocess
import sys
import threading

QUESTION_AT = 12  # behind the header (RFC 1035, 4.1.1)


def name_in(query):
    labels, at = [], QUESTION_AT
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    return ".".join(labels), at + 5  # the end of the question: type and class behind the root label


def serve(server, log):
    while True:
        query, client = server.recvfrom(4096)
        name, end = name_in(query)
        with log.open("a") as out:
            out.write(name + "\n")
        # An answer, recursion available, NXDOMAIN; the question and nothing else.
        server.sendto(query[:2] + b"\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00" + query[QUESTION_AT:end], client)


def main():
    log = pathlib.Path(sys.argv[1])
    log.touch()
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    threading.Thread(target=serve, args=(server, log), daemon=True).start()
    return subprocess.run(sys.argv[2:], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
