#!/usr/bin/python3
"""Thousands of mutated requests to our front, and what it would forward to nginx, HAProxy and Apache.

Each of them must see exactly the one request that was judged: same method, target, fields and body; and none where the
request was refused or broken off. So it is for git's requests and, by each way that they may come, for those that [[allow]]
rules judge. Every request has a sentinel behind it on the connection: whoever takes a byte more or a
byte less than we do for the request loses the sentinel.

$SALLYPORT_TEST_SEED and $SALLYPORT_TEST_REQUESTS choose others, and more.
"""

import collections
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import unittest

import front
import harness

sys.path.append(str(harness.REPO / "tests/forge"))
import upstreams  # noqa: E402

SEED = int(os.environ.get("SALLYPORT_TEST_SEED", 1))
REQUESTS = int(os.environ.get("SALLYPORT_TEST_REQUESTS", 5000))
SENTINEL = b"GET /sentinel HTTP/1.1\r\nHost: sentinel.test\r\nConnection: close\r\n\r\n"
FORWARDED = {"accept", "accept-encoding", "accept-language", "content-encoding", "content-type", "git-protocol", "pragma",
             "user-agent", "host"}
# What a proxy writes itself, or changes on its way.
HOP_BY_HOP = {"connection", "content-length", "transfer-encoding", "keep-alive"}

FIELDS = [rb"Transfer-Encoding: chunked", rb"Transfer-Encoding: xchunked", rb"Transfer-Encoding:\x0bchunked",
          rb"Transfer-Encoding : chunked", rb"Content-Length: 0", rb"Content-Length: 4", rb"Content-Length: +4",
          rb"Content-Length: 4, 4", rb"Content_Length: 99", rb"Host: evil.test", rb"Host: forge.test", rb"Host: forge.test:443",
          rb"Connection: close", rb"Connection: keep-alive, Content-Length", rb"Connection: Transfer-Encoding, Host",
          rb"Expect: 100-continue", rb"Expect: x", rb"Upgrade: websocket", rb"Upgrade: h2c", rb"TE: trailers", rb"Trailer: Host",
          rb"X-Forwarded-Host: evil.test", rb"X-HTTP-Method-Override: DELETE", rb"X-Original-URL: /evil", rb"Forwarded: host=evil.test",
          rb"Accept: */*", rb"Accept: a, b;q=0.1", rb"Accept: \xff\xfe", rb"User-Agent: git/2.39.5", rb"User-Agent:   a\tb  ",
          rb"User-Agent: \xc3\xa9 ()", rb"User-Agent:", rb"Pragma: no-cache", rb"Accept-Language: de, *;q=0.9", rb"Accept-Encoding: gzip",
          rb"Accept-Encoding: deflate, gzip, br", rb"Git-Protocol: version=2", rb"Git-Protocol: version=1:x=y", rb"Git-Protocol: ;",
          rb"Content-Encoding: identity", rb"Content-Encoding: gzip", rb"Content-Type: text/plain", rb"Cookie: a=b",
          rb"Authorization: Basic eDp5", rb"Range: bytes=0-1", rb"If-None-Match: *", rb"Via: 1.1 x", rb" folded", rb"X: a\r\n b",
          rb"Max-Forwards: 0", rb"Content-Length: 4\r\nContent-Length: 5", rb"X-Long: " + b"x" * 3000]
FIELDS = [field.decode("latin-1").encode("latin-1").decode("unicode_escape").encode("latin-1") for field in FIELDS]
PATHS = [b"/acme/widget/info/refs?service=git-upload-pack", b"/acme/widget.git/info/refs?service=git-upload-pack",
         b"/acme/widget/git-upload-pack", b"/acme/widget.git/git-upload-pack", b"/acme/other/info/refs?service=git-upload-pack",
         b"/acme/widget/info/refs", b"//acme/widget/git-upload-pack", b"*", b"https://evil.test/", b"/"]
IN_PATHS = [b"/", b"//", b"/./", b"/../", b"%2e", b"%2f", b"%00", b"%", b";x", b"?", b"&", b"#", b"\\", b".git", b"~", b"+", b"\x80",
            b" ", b"\t", b"@", b":", b"a" * 5000]
METHODS = [b"GET", b"POST", b"HEAD", b"PUT", b"OPTIONS", b"get", b"GET ", b"CONNECT", b"G\0ET", b"PATCH"]
VERSIONS = [b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"http/1.1", b"HTTP/1.1 ", b"", b"HTTP/2.0"]
BODIES = [(b"Content-Length: 4", b"0000"), (b"Content-Length: 8", b"00000000"), (b"Content-Length: 4", b"00000000"),
          (b"Content-Length: 8", b"0000"), (b"Content-Length: 70000", b"0" * 70000),
          (b"Transfer-Encoding: chunked", b"4\r\n0000\r\n0\r\n\r\n"), (b"Transfer-Encoding: CHUNKED", b"1\r\n0\r\n003\r\n000\r\n000\r\n\r\n"),
          (b"Transfer-Encoding: chunked", b"11170\r\n" + b"0" * 70000 + b"\r\n0\r\n\r\n"),
          (b"Transfer-Encoding: chunked", b"4;x\r\n0000\r\n0\r\n\r\n"), (b"Transfer-Encoding: chunked", b"4\r\n00000\r\n\r\n"),
          (b"Transfer-Encoding: chunked", b"4\r\n0000\r\n0\r\nX: y\r\n\r\n"), (b"Transfer-Encoding: chunked", b"4\n0000\n0\n\n"),
          (b"Transfer-Encoding: chunked", b"0\r\n\r\n"), (b"Transfer-Encoding: chunked", b"4\r\n0000\r\n"),
          (b"Content-Length: 46", b"GET /evil HTTP/1.1\r\nHost: evil.test\r\nX: abcde\r\n"),
          (b"Content-Length: 0\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"), (b"", b"0000")]
ODD_BYTES = [b"\0", b"\r", b"\n", b"\t", b" ", b"\x0b", b"\x0c", b"\x7f", b"\x80", b"\xa0", b"\xff", b"\r\n", b":", b",", b";", b'"']


GITS_URLS = (b"/acme/widget/info/refs?service=git-upload-pack", b"/acme/widget/git-upload-pack", b"/acme/widget/git-receive-pack")
PLAIN_PATHS = [b"/a", b"/v1/x?y=z", b"/a%20b/c;d?e=%2e%2e/", b"/", b"/v1/@scope+x/-/y~1.tgz", b"/a?u=http://evil.test/&v[]={}",
               b"//a", b"/a/../b", b"/a?_method=PUT", b"*", b"https://evil.test/"]
PLAIN_FIELDS = [rb"Authorization: Bearer x", rb"X-Forwarded-For: 127.0.0.1", rb"X_Forwarded_For: 127.0.0.1", rb"Proxy-Connection: close",
                rb"Proxy-Authorization: Basic eDp5", rb"Transfer_Encoding: chunked", rb"X-Method-Override: PUT", rb"X-Real-IP: 127.0.0.1",
                rb"Connection: X-A", rb"X-A: b", rb"Cookie: c=d; e=f", rb"If-Modified-Since: x", rb"Origin: https://evil.test",
                rb"Sec-WebSocket-Key: eA==", rb"Content-Disposition: a; b", rb"X-Empty:", rb"Accept: application/dns-json"]


class Mutator:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.catalogue = [data for _, _, data in front.requests() if len(data) < 20_000]
        self.fields, self.paths = FIELDS, PATHS

    def request(self):
        """A valid request of git's, or one of the catalogue, with up to three faults."""
        chance = self.chance
        if chance.random() < 0.15:
            return self.bytes_changed(chance.choice(self.catalogue))
        post = chance.random() < 0.5
        parts = self.valid(post)
        if post:
            length, parts["body"] = chance.choice(BODIES)
            parts["fields"] += [length] if length else []
        # Mostly in what is carried on: a front that refuses everything proves nothing.
        for _ in range(chance.randrange(4)):
            kinds = [self.field_added] * 8 + [self.fields_shuffled, self.field_doubled, self.field_respelled, self.field_removed,
                                              self.target_changed, self.line_changed]
            chance.choice(kinds)(parts)
        head = b" ".join(filter(None, (parts["method"], parts["target"], parts["version"])))
        data = b"\r\n".join([head, *parts["fields"]]) + b"\r\n\r\n" + parts["body"]
        if chance.random() < 0.1:
            data = self.bytes_changed(data)
        if chance.random() < 0.1:
            data += chance.choice([SENTINEL, b"\r\n", b"0\r\n\r\n", b"G", data])
        return data

    def valid(self, has_body):
        fields = [b"Host: forge.test", b"User-Agent: git/2.39.5"]
        if has_body:
            fields.append(b"Content-Type: application/x-git-upload-pack-request")
        return {"method": b"POST" if has_body else b"GET", "target": PATHS[2 * has_body + self.chance.randrange(2)],
                "version": b"HTTP/1.1", "fields": fields, "body": b""}

    def field_added(self, parts):
        parts["fields"].insert(self.chance.randrange(len(parts["fields"]) + 1), self.chance.choice(self.fields))

    def fields_shuffled(self, parts):
        self.chance.shuffle(parts["fields"])

    def field_doubled(self, parts):
        if parts["fields"]:
            parts["fields"].append(self.chance.choice(parts["fields"]))

    def field_removed(self, parts):
        if parts["fields"]:
            parts["fields"].pop(self.chance.randrange(len(parts["fields"])))

    def field_respelled(self, parts):
        if not parts["fields"]:
            return
        at = self.chance.randrange(len(parts["fields"]))
        name, _, value = parts["fields"][at].partition(b":")
        parts["fields"][at] = self.chance.choice([name.lower() + b":" + value, name.upper() + b": \t" + value + b" \t",
                                                  name + b" :" + value, name + b":" + value.upper(), b" " + name + b":" + value])

    def target_changed(self, parts):
        if self.chance.random() < 0.3:
            parts["target"] = self.chance.choice(self.paths)
            return
        at = self.chance.randrange(len(parts["target"]) + 1)
        parts["target"] = parts["target"][:at] + self.chance.choice(IN_PATHS) + parts["target"][at:]

    def line_changed(self, parts):
        key, choices = self.chance.choice([("method", METHODS), ("version", VERSIONS)])
        parts[key] = self.chance.choice(choices)

    def bytes_changed(self, data):
        for _ in range(self.chance.randrange(1, 3)):
            at = self.chance.randrange(len(data))
            kind = self.chance.randrange(4)
            if kind == 0:
                data = data[:at] + self.chance.choice(ODD_BYTES) + data[at:]
            elif kind == 1:
                data = data[:at] + data[at + 1:]
            elif kind == 2:
                data = data[:at] + bytes([data[at] ^ (1 << self.chance.randrange(8))]) + data[at + 1:]
            else:
                end = min(len(data), at + self.chance.randrange(1, 40))
                data = data[:end] + data[at:end] + data[end:]
            data = data or b"G"
        return data


class PlainMutator(Mutator):
    """The same for requests that are not git's. `before`: what stands before a path in the request line."""

    def __init__(self, seed, before):
        super().__init__(seed)
        self.fields, self.paths, self.before = FIELDS + PLAIN_FIELDS, [self.said(path, before) for path in PLAIN_PATHS], before
        self.catalogue = [self.plain(data) for data in self.catalogue] + [case.data for case in front.http_cases()]
        self.catalogue = [data.replace(b" /", b" " + before + b"/", 1) for data in self.catalogue if len(data) < 20_000]

    @staticmethod
    def said(path, before):
        return before + path if path.startswith(b"/") else path

    @staticmethod
    def plain(data):
        for url in GITS_URLS:
            data = data.replace(url, b"/a")
        return data

    def valid(self, has_body):
        method = self.chance.choice([b"POST", b"PUT", b"PATCH"] if has_body else [b"GET", b"GET", b"DELETE"])
        return {"method": method, "target": self.paths[self.chance.randrange(6)], "version": b"HTTP/1.1",
                "fields": [b"Host: forge.test", b"User-Agent: x"], "body": b""}


Forwarded = collections.namedtuple("Forwarded", "method target complete data came_from")


def carried(requests, way):
    """(what our front forwards, each byte string once; how many requests came to which first audit line)"""
    program = harness.BIN_DIR / "front_differential"
    done = subprocess.run([program, way], input="".join(data.hex() + "\n" for data in requests), text=True, check=True,
                          stdout=subprocess.PIPE)
    forwarded, verdicts = {}, collections.Counter()
    lines = done.stdout.splitlines()
    assert len(lines) == len(requests)
    for data, line in zip(requests, lines):
        words = line.split(" ")
        verdicts[words[0].split(",")[0]] += 1
        for at in range(1, len(words), 4):
            method, target, complete, sent = words[at:at + 4]
            forwarded.setdefault((sent, complete), Forwarded(method, target, complete == "yes", bytes.fromhex(sent), data))
    return list(forwarded.values()), verdicts


def reading(data):
    """Our own bytes as what they shall mean: fields and body."""
    head, _, body = data.partition(b"\r\n\r\n")
    pairs = [line.decode("latin-1").split(":", 1) for line in head.split(b"\r\n")[1:]]
    fields = [(name.lower(), value.strip()) for name, value in pairs]
    if ("transfer-encoding", "chunked") in fields:
        data, body = body, b""
        while (size := int(data.partition(b"\r\n")[0], 16)) > 0:
            data = data.partition(b"\r\n")[2]
            body, data = body + data[:size], data[size + 2:]
    return fields, body


def without_hops(fields):
    """Of each name its values: a proxy may join those of several fields into one (RFC 9110, 5.3)."""
    values = collections.defaultdict(list)
    for name, value in fields:
        if name not in HOP_BY_HOP:
            values[name] += [part.strip() for part in value.replace(";", ",").split(",")]
    return dict(values)


class Differential(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.declined = collections.Counter()

    @staticmethod
    def is_gits(sent):
        return sent.target.startswith("/acme/")

    def fault(self, upstream, sent):
        """What that upstream sees otherwise than it was judged; None when it is the same."""
        if not sent.complete:
            before = upstream.recorder.seen
            upstream.ask(sent.data, ends=True)
            return None if upstream.recorder.seen == before else "a request that was broken off was taken for whole"
        before = upstream.recorder.seen
        answers = upstreams.answers_in(upstream.ask(sent.data + SENTINEL))
        if [status for status, _ in answers] == [400] and upstream.recorder.seen == before and not self.is_gits(sent):
            self.declined[upstream.name] += 1  # as nginx does with two Authorizations: it is none then, and it is over
            return None
        if [status for status, _ in answers] != [200, 200]:
            return f"answers: {answers}"
        seen, sentinel = (json.loads(body) for _, body in answers)
        if (sentinel["target"], sentinel["body"]) != ("/sentinel", ""):
            return f"the sentinel was read as {sentinel}"
        fields, body = reading(sent.data)
        wanted = {"method": sent.method, "target": sent.target, "fields": without_hops(fields), "body": body.hex()}
        got = seen | {"fields": without_hops(seen["fields"])}
        return None if got == wanted else f"was judged as {wanted}, and seen as {got}"

    def test_every_upstream_sees_exactly_the_judged_request(self):
        self.compare(Mutator(SEED), "git", REQUESTS)

    def test_every_upstream_sees_exactly_the_judged_request_under_tls(self):
        self.compare(PlainMutator(SEED, b""), "tls", REQUESTS // 2)

    def test_every_upstream_sees_exactly_the_judged_request_in_the_clear(self):
        self.compare(PlainMutator(SEED + 1, b""), "clear", REQUESTS // 2)

    def test_every_upstream_sees_exactly_the_judged_request_of_a_proxy(self):
        self.compare(PlainMutator(SEED + 2, b"http://forge.test"), "proxy", REQUESTS // 2)

    def compare(self, mutator, way, count):
        requests = [mutator.request() for _ in range(count)]
        forwarded, verdicts = carried(requests, way)
        print(f"{way}: {count} requests, seed {SEED}: {dict(verdicts)}; {len(forwarded)} to forward that differ", file=sys.stderr)
        # Else it would prove little.
        self.assertGreater(verdicts["begin"], count / 10)
        self.assertGreater(count - verdicts["begin"], count / 10)
        self.assertGreater(len(forwarded), min(200, count / 20))
        with concurrent.futures.ThreadPoolExecutor(len(upstreams.COMMANDS)) as pool:
            for complaints in pool.map(lambda name: self.complaints(name, forwarded), upstreams.COMMANDS):
                self.assertEqual(complaints, [])

    def complaints(self, name, forwarded):
        upstream = upstreams.Upstream(name)
        try:
            found = [(name, fault, sent.data, sent.came_from) for sent in forwarded if (fault := self.fault(upstream, sent))]
            whole = sum(sent.complete for sent in forwarded)
            wanted = 2 * (whole - self.declined[name])
            if not found and upstream.recorder.seen != wanted:
                found.append((name, f"{upstream.recorder.seen} requests came to the recorder, not {wanted}"))
            if self.declined[name] > len(forwarded) / 10:
                found.append((name, f"{self.declined[name]} of {len(forwarded)} were declined, which proves little"))
            return found[:5]
        finally:
            upstream.stop()

    def test_the_comparison_itself_notices_what_is_smuggled(self):
        # What a careless front would forward: the upstreams must be seen to read it otherwise.
        smuggled = Forwarded("POST", "/x", True, b"POST /x HTTP/1.1\r\nHost: forge.test\r\nContent-Length: 4\r\n\r\n0000"
                             b"GET /evil HTTP/1.1\r\nHost: forge.test\r\n\r\n", b"")
        eaten = Forwarded("POST", "/x", True, b"POST /x HTTP/1.1\r\nHost: forge.test\r\nContent-Length: 40\r\n\r\n0000", b"")
        other = Forwarded("GET", "/y", True, b"GET /x HTTP/1.1\r\nHost: forge.test\r\n\r\n", b"")
        good = Forwarded("GET", "/x", True, b"GET /x HTTP/1.1\r\nHost: forge.test\r\n\r\n", b"")
        upstream = upstreams.Upstream("haproxy")
        self.addCleanup(upstream.stop)
        self.assertIsNone(self.fault(upstream, good))
        for sent in (smuggled, eaten, other):
            self.assertIsNotNone(self.fault(upstream, sent), sent.data)


if __name__ == "__main__":
    harness.main()
