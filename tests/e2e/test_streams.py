#!/usr/bin/python3
"""What is long: large bodies, sockets and streams of events, through every entry, whole and in a gate that stays small.

SALLYPORT_TEST_MIB sets the size of the bodies in MiB, SALLYPORT_TEST_SECONDS for how long a WebSocket is kept busy.
"""

import hashlib
import os
import subprocess
import zlib

import harness
import processes
import web
from harness import WITHOUT_PROXY
from test_egress import EgressCase

SIZE = int(os.environ.get("SALLYPORT_TEST_MIB", "1")) << 20
SECONDS = float(os.environ.get("SALLYPORT_TEST_SECONDS", "0"))
LIMIT_KIB = 64 * 1024
TIMEOUT_SECONDS = 1200

POLICY = '''\
version = 1

[[allow]]
host = "web.test"
methods = ["GET", "POST", "PUT"]
max_body = "unlimited"
websocket = true

[[allow]]
host = "plain.test"
ports = [80]
methods = ["GET", "POST", "PUT"]
max_body = "unlimited"
websocket = true

[[allow]]
host = "pinned.test"
tls = "splice"

[[tcp]]
host = "echo.test"
port = 7777
'''
# (URL's beginning, what the entry is called, how curl gets there)
WAYS = [("https://web.test", "tls", WITHOUT_PROXY), ("https://web.test", "proxy", []),
        ("http://plain.test", "http", WITHOUT_PROXY), ("http://plain.test", "proxy", []),
        ("https://pinned.test", "tls", WITHOUT_PROXY), ("https://pinned.test", "proxy", [])]

# `ask(URL, BY_PROXY, METHOD, FIELDS)`: sends a request, and returns the stream and its reader behind the answer's head.
CLIENT = r'''
import base64, os, socket, ssl, sys, time, urllib.parse

def ask(url, by_proxy, method="GET", fields=""):
    scheme, host, target = urllib.parse.urlsplit(url)[:3]
    port = 443 if scheme == "https" else 80
    stream = socket.create_connection(("198.18.0.1", 3128) if by_proxy else (host, port), 120)
    if by_proxy and scheme == "https":
        stream.sendall(f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += stream.recv(1)
    if scheme == "https":
        stream = ssl.create_default_context().wrap_socket(stream, server_hostname=host)
    elif by_proxy:
        target = url
    stream.sendall(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode())
    reader = stream.makefile("rb")
    status = reader.readline().split()[1]
    while reader.readline().strip():
        pass
    return stream, reader, int(status)

url, by_proxy = sys.argv[1], sys.argv[2] == "proxy"
'''
WEBSOCKET = CLIENT + r'''
stream, reader, status = ask(url + "/socket", by_proxy, fields="Connection: Upgrade\r\nUpgrade: websocket\r\n"
                             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n")
assert status == 101, status
end, count = time.monotonic() + float(sys.argv[3]), 0
while count < 100 or time.monotonic() < end:
    count += 1
    said, mask = f"message {count}".encode(), os.urandom(4)
    stream.sendall(bytes([0x81, 0x80 | len(said)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(said)))
    got = reader.read(2 + len(said))
    assert got == bytes([0x81, len(said)]) + said, got
    if count > 100:
        time.sleep(0.1)
stream.sendall(b"\x88\x80\0\0\0\0")
assert reader.read() == b""
if url.startswith("https"):
    stream.unwrap()
print("echoed")
'''
# Each event is sent only when somebody has seen the one before, and told so on another connection.
EVENTS = CLIENT + r'''
stream, reader, status = ask(url + "/events", by_proxy, fields="Connection: close\r\n")
for number in range(int(sys.argv[3])):
    while not (line := reader.readline()).startswith(b"data:"):
        assert line, "the stream ended"
    assert line == b"data: %d\n" % number, line
    _, seen, status = ask(url + "/seen", by_proxy, "POST", "Content-Length: 0\r\nConnection: close\r\n")
    assert status == 200 and seen.read().endswith(b" 0\n")
reader.read()
print("seen")
'''
RAW = r'''
import hashlib, socket, sys, threading
piece, size = bytes(range(251)) * 4177, int(sys.argv[1])
stream = socket.create_connection(("echo.test", 7777), 120)

def send(digest):
    left = size
    while left > 0:
        now = piece[:left]
        stream.sendall(now)
        digest.update(now)
        left -= len(now)
    stream.shutdown(socket.SHUT_WR)

sent, got = hashlib.sha256(), hashlib.sha256()
sender = threading.Thread(target=send, args=(sent,))
sender.start()
while data := stream.recv(1 << 18):
    got.update(data)
sender.join()
assert sent.digest() == got.digest()
print("the same")
'''


class Streams(EgressCase):
    policy = POLICY

    def make_upstreams(self, ca):
        return {"web.test": web.Web(ca.leaf("web.test")), "plain.test": web.Web(),
                "pinned.test": web.Web(ca.leaf("pinned.test")), "echo.test": web.Raw()}

    def finish_small(self, command):
        """Runs the script; at its end neither of our programs has ever been large."""
        running = self.stage.start(command + "\ncheckpoint done", ("--quiet",))
        running.wait_for_checkpoint("done", TIMEOUT_SECONDS)
        for program, pid in processes.confined_programs(running.tree()).items():
            peak = processes.peak_kib(pid)
            print(f"{program}: {peak} KiB at most")
            if not harness.SANITIZED:
                self.assertLess(peak, LIMIT_KIB, program)
        running.pass_checkpoint("done")
        outcome = self.assert_ok(running.finish())
        self.assertEqual(outcome.events("refused"), [], str(outcome))
        self.assertEqual({line["reason"] for line in outcome.events("end")}, {"none"}, str(outcome))
        return outcome

    def test_large_bodies_arrive_whole(self):
        with open(self.stage.work / "body", "wb") as body:
            for piece in web.pattern(SIZE):
                body.write(piece)
        subprocess.run(["chown", str(self.stage.sandbox_uid), self.stage.work / "body"], check=True)
        digest = web.pattern_digest(SIZE)
        script = ""
        for url, _, way in WAYS:
            curl = " ".join([*way, "curl -sS --fail --no-progress-meter"])
            curl += " --cacert upstream-ca.pem" if "pinned" in url else ""
            script += f"{curl} {url}/bytes/{SIZE} | sha256sum\n{curl} -T body {url}/digest\n"
        outcome = self.finish_small(script)
        self.assertEqual(outcome.stdout.splitlines(), [f"{digest}  -", f"{digest} {SIZE}"] * len(WAYS), str(outcome))
        self.assertEqual([line["entry"] for line in outcome.events("begin")], [entry for _, entry, _ in WAYS for _ in range(2)])

    def test_raw_bytes_arrive_whole(self):
        self.stage.put("raw.py", RAW)
        outcome = self.finish_small(f"/usr/bin/python3 raw.py {SIZE}")
        self.assertEqual(outcome.stdout, "the same\n")
        ended = outcome.events("end")[0]
        self.assertEqual((ended["bytes_in"], ended["bytes_out"]), (SIZE, SIZE))

    def test_a_websocket_echoes(self):
        self.stage.put("websocket.py", WEBSOCKET)
        for url, entry, _ in WAYS[:4]:
            with self.subTest(url=url, entry=entry):
                outcome = self.assert_allowed(["/usr/bin/python3", "websocket.py", url, entry, str(SECONDS)], entry=entry,
                                              status=101, path="/socket")
                self.assertEqual(outcome.stdout, "echoed\n")

    def test_an_event_arrives_before_the_next_is_sent(self):
        self.stage.put("events.py", EVENTS)
        for url, entry, _ in WAYS:
            with self.subTest(url=url, entry=entry):
                trust = ["env", "SSL_CERT_FILE=upstream-ca.pem"] if "pinned" in url else []
                status = {} if "pinned" in url else {"status": 200}
                command = [*trust, "/usr/bin/python3", "events.py", url, entry, str(web.EVENTS)]
                outcome = self.assert_allowed(command, requests=1 + web.EVENTS, entry=entry, **status)
                self.assertEqual(outcome.stdout, "seen\n")

    def test_what_is_packed_passes_as_it_is(self):
        # H19: who would unpack it had a thousand times as much.
        packed = web.bomb()
        self.assertEqual(zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(packed[:4096], 1 << 20), bytes(1 << 20))
        script = ""
        for url, _, way in WAYS:
            trust = "--cacert upstream-ca.pem" if "pinned" in url else ""
            script += " ".join([*way, "curl -sS --fail", trust, f"-D head {url}/bomb | sha256sum\n"])
            script += "grep -i content-encoding head\n"
        outcome = self.finish_small(script)
        digest = hashlib.sha256(packed).hexdigest()
        lines = outcome.stdout.splitlines()
        self.assertEqual(lines[::2], [f"{digest}  -"] * len(WAYS), str(outcome))
        self.assertEqual([line.lower() for line in lines[1::2]], ["content-encoding: gzip"] * len(WAYS), str(outcome))


if __name__ == "__main__":
    harness.main()
