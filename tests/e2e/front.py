"""For tests of the front: the tables of tests/data/front, ClientHellos to order, and a client that sends any bytes."""

import base64
import collections
import dataclasses
import json
import random
import re
import signal
import ssl
import typing

import harness

# Of one entry, in one session at once: beyond, the warden counts (docs/audit.md).
MOST_LINES_OF_A_REASON = 45
DATA = harness.REPO / "tests/data/front"
MACROS = {
    "$GET": r"GET /acme/widget/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: forge.test\r\n",
    "$POST": r"POST /acme/widget/git-upload-pack HTTP/1.1\r\nHost: forge.test\r\n"
             r"Content-Type: application/x-git-upload-pack-request\r\n",
    "$PUSH": r"POST /acme/widget/git-receive-pack HTTP/1.1\r\nHost: forge.test\r\n"
             r"Content-Type: application/x-git-receive-pack-request\r\n",
}
_BYTES = {"r": b"\r", "n": b"\n", "t": b"\t", "0": b"\0", "\\": b"\\"}
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\\((\d+) ([^)]*)\)|\\(.)|([^\\]+)", re.DOTALL)


def unescaped(text):
    """The bytes that a table's text stands for; requests.tsv says how."""
    out = b""
    for hexadecimal, count, piece, letter, plain in _ESCAPE.findall(text):
        if hexadecimal:
            out += bytes([int(hexadecimal, 16)])
        elif count:
            out += unescaped(piece) * int(count)
        else:
            out += _BYTES[letter] if letter else plain.encode("ascii")
    return out


def table(name):
    lines = (DATA / name).read_text().split("\n")
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def _expanded(payload, macros):
    macro = next((macro for macro in macros if payload.startswith(macro)), "")
    return unescaped(macros.get(macro, "") + payload[len(macro):])


def requests():
    """[(name, reason or "-", bytes)]"""
    return [(name, reason, _expanded(payload, MACROS)) for name, reason, payload in table("requests.tsv")]


class HttpCase(typing.NamedTuple):
    """A request that [[allow]] rules judge. `sent`: the head that its upstream gets, where the table says."""
    name: str
    reason: str  # "-": it is carried out
    data: bytes
    host: str
    sent: bytes = b""

    @property
    def has_body(self):
        return not self.data.endswith(b"\r\n\r\n") or self.data.endswith(b"\r\n0\r\n\r\n")


def http_cases():
    """Those of http.tsv."""
    macros = {"$GET": r"GET /a HTTP/1.1\r\nHost: forge.test\r\n", "$POST": r"POST /a HTTP/1.1\r\nHost: forge.test\r\n"}
    return [HttpCase(name, reason, _expanded(payload, macros), "keyed.test" if "Host: keyed.test" in payload else "forge.test",
                     unescaped(sent[0]) if sent else b"") for name, reason, payload, *sent in table("http.tsv")]


def borrowed_cases():
    """Those of requests.tsv that are not git's own: framing and fields are the same whatever is asked for."""
    urls = re.compile(rb"/acme/widget/(info/refs\?service=git-upload-pack|git-upload-pack|git-receive-pack)")
    return [HttpCase(name, reason, urls.sub(b"/a", data), "forge.test") for name, reason, data in requests()
            if name.split(" ")[0] not in ("H13", "H14", "H15")]


def proxy_requests():
    """[(name, reading or reason, bytes)]"""
    macros = {"$CONNECT": r"CONNECT api.ok.test:443 HTTP/1.1\r\nHost: api.ok.test:443\r\n",
              "$GET": r"GET http://api.ok.test/a HTTP/1.1\r\nHost: api.ok.test\r\n"}
    return [(name, reading, _expanded(payload, macros)) for name, reading, payload in table("proxy.tsv")]


class Tunnel(typing.NamedTuple):
    name: str
    reason: str  # "-": what is said is allowed
    connect: bytes
    said: bytes


def tunnels():
    """What comes behind a CONNECT."""
    macros = {"$CONNECT": r"CONNECT forge.test:443 HTTP/1.1\r\n\r\n", "$CLEAR": r"CONNECT forge.test:80 HTTP/1.1\r\n\r\n"}
    cases = []
    for name, reason, payload, *sni in table("tunnels.tsv"):
        head, end, said = _expanded(payload, macros).partition(b"\r\n\r\n")
        if sni:
            hello = Hello().replace(SERVER_NAME) if sni[0] == "-" else Hello(sni[0].encode())
            said += b"".join(hello.records())
        cases.append(Tunnel(name, reason, head + end, said))
    return cases


def hosts():
    """[(bytes, reason or "-")]"""
    return [(unescaped(spelling), reason) for spelling, reason in table("hosts.tsv")]


def in_pieces(data, seed):
    """Cut at up to six places."""
    chance = random.Random(seed)
    cuts = sorted({0, len(data), *(chance.randrange(len(data)) for _ in range(6))})
    return [data[start:end] for start, end in zip(cuts, cuts[1:])]


# ---- ClientHellos ----

SERVER_NAME, SUPPORTED_VERSIONS, ECH = 0, 43, 0xfe0d


def _u16(number):
    return number.to_bytes(2, "big")


def server_name(*names, kind=0):
    entries = b"".join(bytes([kind]) + _u16(len(name)) + name for name in names)
    return _u16(len(entries)) + entries


class Hello:
    """A ClientHello as OpenSSL writes it, its extensions to be changed: a list of (type, data)."""

    def __init__(self, name=b"forge.test", alpn=()):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        if alpn:
            context.set_alpn_protocols(alpn)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            context.wrap_bio(incoming, outgoing, server_hostname="forge.test").do_handshake()
        except ssl.SSLWantReadError:
            pass
        body = outgoing.read()[9:]
        at = 2 + 32
        at += 1 + body[at]
        at += 2 + int.from_bytes(body[at:at + 2], "big")
        at += 1 + body[at]
        self.version, self._head = body[:2], body[2:at]
        self.extensions, at = [], at + 2
        while at < len(body):
            size = int.from_bytes(body[at + 2:at + 4], "big")
            self.extensions.append((int.from_bytes(body[at:at + 2], "big"), body[at + 4:at + 4 + size]))
            at += 4 + size
        self.replace(SERVER_NAME, server_name(name))

    def replace(self, kind, *datas):
        """Those of that kind by these: none, one or several."""
        at = next((i for i, (k, _) in enumerate(self.extensions) if k == kind), 0)
        rest = [(k, d) for k, d in self.extensions if k != kind]
        self.extensions = rest[:at] + [(kind, data) for data in datas] + rest[at:]
        return self

    def message(self):
        extensions = b"".join(_u16(kind) + _u16(len(data)) + data for kind, data in self.extensions)
        body = self.version + self._head + _u16(len(extensions)) + extensions
        return b"\x01" + len(body).to_bytes(3, "big") + body

    def records(self, size=16384, version=b"\x03\x01"):
        message = self.message()
        pieces = [message[at:at + size] for at in range(0, len(message), size)]
        return [b"\x16" + version + _u16(len(piece)) + piece for piece in pieces]


# ---- the client inside ----

CLIENT = r'''#!/usr/bin/python3
"""One connection for each task of tasks.json, one after the other; tells what came back."""
import base64, json, socket, ssl, sys

context = ssl.create_default_context()
PATIENCE = 60


def address_of(name, known={}):
    """Asked once: the gate answers only so many questions a second."""
    if name not in known:
        known[name] = socket.getaddrinfo(name, 443, type=socket.SOCK_STREAM)[0][4][0]
    return known[name]


def read_head(stream):
    got = b""
    while not got.endswith(b"\r\n\r\n") and (byte := stream.recv(1)):
        got += byte
    return got


def rest_of(stream):
    got = b""
    while piece := stream.recv(65536):
        got += piece
    return got


def read_answer(stream):
    """One answer with a declared length, and what was said before it."""
    got = read_head(stream)
    if got.startswith(b"HTTP/1.1 1"):
        return got + read_answer(stream)
    if not got.endswith(b"\r\n\r\n"):
        return got
    head, _, body = got.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    while len(body) < length:
        piece = stream.recv(65536)
        if not piece:
            break
        got += piece
        body += piece
    return got


def run(task):
    answer, end = b"", "closed"
    try:
        stream = socket.create_connection((address_of(task["address"]), task["port"]), PATIENCE)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if task["connect"]:
            stream.sendall(base64.b64decode(task["connect"]))
            answer = read_head(stream)
            if not answer.startswith(b"HTTP/1.1 200 "):
                return {"answer": base64.b64encode(answer + rest_of(stream)).decode(), "end": end}
            answer = b""
        if task["sni"]:
            stream = context.wrap_socket(stream, server_hostname=task["sni"], suppress_ragged_eofs=False)
        for exchange in task["exchanges"]:
            try:
                for piece in exchange["pieces"]:
                    stream.sendall(base64.b64decode(piece))
            except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                pass  # it said no before it had all; why, is still to be read
            if exchange["reads"] == "answer":
                answer += read_answer(stream)
        if task["leaves"]:
            answer += read_answer(stream)
            return {"answer": base64.b64encode(answer).decode(), "end": "left"}
        if task["hangs_up"]:
            return {"answer": base64.b64encode(stream.recv(65536)).decode(), "end": "left"}
        if task["ends"]:
            stream.shutdown(socket.SHUT_WR)
        while piece := stream.recv(65536):
            answer += piece
    except TimeoutError:
        end = "silent"
    except ssl.SSLError as error:
        end = "tls " + str(error.reason)
    except OSError:  # or "not connected", when it comes before shutdown()
        end = "reset"
    return {"answer": base64.b64encode(answer).decode(), "end": end}


# Connections close as they are forgotten.
for task in json.load(open("tasks.json")):
    print(json.dumps(run(task)), flush=True)
'''


@dataclasses.dataclass
class Task:
    """`pieces` are sent one by one; `first`: sent before, and its answer awaited. `ends`: says that it sends no more;
    `leaves`: goes when it has one answer; `hangs_up`: at the first bytes of one.

    `connect`: a CONNECT that comes before all that; a `sni` is for TLS inside. `door`: where to, in a ServedCase; else
    only which entry it is.
    """

    name: str
    pieces: list
    reasons: list  # of its audit lines, in their order; "one|another" is either
    first: bytes = b""
    address: str = "forge.test"
    port: int = 443
    sni: str = "forge.test"
    ends: bool = False
    leaves: bool = False
    hangs_up: bool = False
    connect: bytes = b""
    door: str = ""
    answer: bytes = b""
    end: str = ""
    lines: list = dataclasses.field(default_factory=list)

    def to_json(self):
        encode = lambda pieces: [base64.b64encode(piece).decode() for piece in pieces]  # noqa: E731
        exchanges = [{"pieces": encode([self.first]), "reads": "answer"}] if self.first else []
        exchanges.append({"pieces": encode(self.pieces), "reads": "rest"})
        return {"address": self.address, "port": self.port, "sni": self.sni, "exchanges": exchanges, "ends": self.ends,
                "leaves": self.leaves, "hangs_up": self.hangs_up, "connect": encode([self.connect])[0]}

    @property
    def entry(self):
        return {"https://forge.test": "tls", "http://forge.test": "http"}.get(self.door, self.door)

    def is_told_by(self, lines):
        return len(lines) == len(self.reasons) and all(
            line["reason"] in reasons.split("|") for line, reasons in zip(lines, self.reasons))

    @property
    def answers(self):
        return re.split(rb"(?=HTTP/1\.1 \d{3} )", self.answer)[1:]


def _alternatives(tasks):
    return [reason for task in tasks for reasons in task.reasons for reason in reasons.split("|")]


class FrontCase(harness.E2E):
    """Many connections in one session, each with its audit lines."""

    client = "client.py"

    def send(self, tasks):
        """All are refused: reason by reason, one line each, and nothing goes anywhere. Fills the tasks' results.

        In as many sessions as it takes, since a session's log counts what comes too often instead of telling it.
        """
        for batch in self.batches(tasks):
            self._send_in_one_session(batch)

    @staticmethod
    def batches(tasks):
        batch, counts = [], collections.Counter()
        for task in tasks:
            own = collections.Counter((task.entry, reason) for reason in _alternatives([task]))
            if any(counts[sort] + number > MOST_LINES_OF_A_REASON for sort, number in own.items()):
                yield batch
                batch, counts = [], collections.Counter()
            batch.append(task)
            counts.update(own)
        yield batch

    def _send_in_one_session(self, tasks):
        before = self.stage.traffic()
        outcome = self.carry_out(tasks)
        refused = outcome.events("refused")
        lines = iter(line for line in refused if line["entry"] != "dns")
        for task in tasks:
            task.lines = [line for _, line in zip(task.reasons, lines)]
        wrong = [f"{task.name}: {[line['reason'] for line in task.lines]}, not {task.reasons}: "
                 f"{task.lines} {task.end} {task.answer[:300]}"
                 for task in tasks if not task.is_told_by(task.lines)]
        self.assertEqual(wrong[:3], [], f"{len(wrong)} wrong")
        self.assert_all_refused(outcome, _alternatives(tasks), sum(len(task.reasons) for task in tasks), before)

    def carry_out(self, tasks):
        self._prepare(tasks)
        outcome = self.assert_ok(self.run_inside(["/usr/bin/python3", self.client], ("--quiet",)))
        self._fill_in(tasks, outcome)
        return outcome

    def _prepare(self, tasks):
        self.stage.put("client.py", CLIENT)
        self.stage.put("tasks.json", json.dumps([task.to_json() for task in tasks]), 0o644)

    def _fill_in(self, tasks, outcome):
        results = [json.loads(line) for line in outcome.stdout.splitlines()]
        self.assertEqual(len(results), len(tasks), outcome.stderr)
        for task, result in zip(tasks, results):
            task.answer, task.end = base64.b64decode(result["answer"]), result["end"]

    def assert_told(self, task):
        """Each refusal's answer has the status and the sentence of its reason, and the id of its audit line."""
        self.assertEqual(len(task.answers), len(task.reasons), f"{task.name}: {task.answer} {task.end}")
        for line, answer in zip(task.lines, task.answers):
            reason = line["reason"]
            status, sentence = REASONS[reason]
            self.assertTrue(answer.startswith(f"HTTP/1.1 {status} ".encode()), f"{task.name}: {answer}")
            if line["method"] != "HEAD":
                self.assertIn(sentence.encode(), answer, task.name)
                self.assertIn(line["request"].encode(), answer, task.name)


class ServedCase(FrontCase):
    """The same at the doors of `sallyport serve`, from outside of any sandbox."""

    DOORS = {"proxy": ["--proxy"], "tls": ["--tls"], "http": ["--http"]}
    FIXED = ("https://forge.test", "http://forge.test")

    def carry_out(self, tasks):
        ca_file = self.stage.home / "serve-ca.pem"
        running, ready = self.stage.serve(
            "--ca-file", ca_file, *(word for option in self.DOORS.values() for word in (*option, "127.0.0.1:0")),
            *(word for target in self.FIXED for word in ("--door", f"127.0.0.1:0={target}")))
        doors = {name: ready[name] for name in self.DOORS} | {door["target"]: door["address"] for door in ready["doors"]}
        for task in tasks:
            task.address, port = doors[task.door].rsplit(":", 1)
            task.port = int(port)
        self._prepare(tasks)
        client = self.stage.spawn(["/usr/bin/python3", "client.py"], env=self.stage.environment(SSL_CERT_FILE=str(ca_file)))
        self._fill_in(tasks, self.assert_ok(client.finish()))
        running.process.send_signal(signal.SIGINT)
        return self.assert_ok(running.finish())


def _reasons():
    """{code: (status, sentence)} as docs/errors.md has them."""
    rows = {}
    for line in (harness.REPO / "docs/errors.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) >= 4 and cells[1].isdigit():
            rows[cells[0].strip("`")] = (int(cells[1]), cells[3])
    return rows


REASONS = _reasons()
# After these the connection ends (base/reason.h).
ENDING = {"bad_request", "head_too_large", "target_too_long", "expectation_failed", "host_mismatch"}
