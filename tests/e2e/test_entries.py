#!/usr/bin/python3
"""The catalogue for what is not git, against a running gate, by every way in: a sandbox's TLS and HTTP, and at the doors of
`sallyport serve` the explicit proxy, TLS, HTTP and doors of one host. gate/http_catalogue_test.cc, entries_test.cc and
proxy_catalogue_test.cc have the same tables."""

import dataclasses
import re
import socket
import threading
import typing

import front
import harness
import lookups
import test_front
import web
from front import Hello, Task

# What gate/egress_grant.h says, and two hosts more.
POLICY = '''\
version = 1

[[allow]]
host = "forge.test"
ports = [80, 443]
methods = ["GET", "HEAD", "DELETE"]
paths = ["/a", "/v1/**", "/dns-query", "/resolve", "/.well-known/**"]

[[allow]]
host = "forge.test"
ports = [80, 443]
methods = ["POST", "PUT"]
paths = ["/a", "/up"]
max_body = "100B"

[[allow]]
host = "forge.test"
ports = [80, 443]
methods = ["GET"]
paths = ["/chat"]
websocket = true

[[deny]]
host = "forge.test"
paths = ["/v1/secret"]

[[allow]]
host = "keyed.test"
ports = [80, 443]
methods = ["GET", "POST"]

[[git]]
repo = "keyed.test/o/r"
access = "fetch"
credential = "forge"

[[allow]]
host = "api.ok.test"
ports = [80, 443]

[[allow]]
host = "pin.test"
tls = "splice"

[[tcp]]
host = "echo.test"
port = 7777
'''
# What becomes of what a smuggler hopes to have served.
BEHIND = "path_not_allowed"
CONNECT = b"CONNECT %s HTTP/1.1\r\n\r\n"


class Way(typing.NamedTuple):
    """How a request that any host's TLS would bring comes in."""
    door: str
    connect: int = 0  # the port of a CONNECT before; 0: none
    tls: bool = False
    absolute: bool = False
    another_host: str = "host_mismatch"  # what a Host that is another is there

    @property
    def name(self):
        return f"{self.door}{' by CONNECT' if self.connect else ''}{' under TLS' if self.tls else ''}"

    def connect_to(self, host):
        return CONNECT % f"{host}:{self.connect}".encode()

    def spelled(self, case):
        """In the clear the ports are the other way round, and a proxy is asked with a URL where there is a path."""
        if self.tls:
            return case.data
        data = re.sub(rb"test:(80|443)", lambda m: b"test:443" if m[1] == b"80" else b"test:80", case.data)
        path = re.match(rb"([^/\r\n]*[^!-~])/", data)
        if self.absolute and path:
            data = data[:path.end(1)] + b"http://" + case.host.encode() + data[path.end(1):]
        return data

    def is_for(self, case):
        """A CONNECT belongs to a proxy: proxy.tsv has those. And a door of one host leads to no other."""
        return not (self.absolute and case.data.startswith(b"CONNECT ")) and not (
            self.door.endswith("//forge.test") and case.host != "forge.test")

    def reason(self, case):
        if case.reason == "host_mismatch":
            return self.another_host
        if self.absolute and b"http://" not in self.spelled(case)[:40]:
            return f"{case.reason}|proxy_form"
        return case.reason

    def task(self, case, behind=True, reasons=None):
        """With a refused request behind it, unless whether that is read depends on how much of a body had come."""
        reason, data = self.reason(case), self.spelled(case)
        reasons = [reason] if reasons is None else reasons
        ends = reason.split("|")[0] in front.ENDING
        behind = behind and (ends or not case.has_body)
        if behind:
            data += self.spelled(case._replace(
                data=b"GET /logout HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % case.host.encode()))
            reasons = reasons + [BEHIND] * (not ends)
        return Task(f"{case.name}, {self.name}", [data], reasons, door=self.door, address=case.host,
                    port=443 if self.tls else 80, connect=self.connect_to(case.host) if self.connect else b"",
                    sni=case.host if self.tls else "", leaves=not behind)


INSIDE = [Way("tls", tls=True), Way("http")]
SERVED = [Way("proxy", absolute=True, another_host="bad_request"), Way("proxy", connect=443, tls=True),
          Way("proxy", connect=80), Way("tls", tls=True), Way("http", another_host="host_not_allowed|plain_http"),
          Way("https://forge.test", tls=True), Way("http://forge.test")]


class Entries(front.FrontCase):
    """Upstreams that count what reaches them, and a name server that counts what it is asked."""

    policy = POLICY

    def setUp(self):
        super().setUp()
        self.asked = self.stage.root / "asked"
        self.asked.touch()
        self.name_server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.name_server.bind(("127.0.0.1", 0))
        threading.Thread(target=lookups.serve, args=(self.name_server, self.asked), daemon=True).start()
        self.stage.traffic_sources.append(lambda: self.asked.read_text())
        self.stage.write_policy(self.policy)
        self.use(web.Web(self.forge.ca.leaf("forge.test", "keyed.test")))

    def use(self, upstream):
        self.addCleanup(upstream.stop)
        self.upstream = upstream
        self.stage.traffic_sources.append(upstream.traffic)
        host, port = self.name_server.getsockname()
        hosts = "".join(f'[host."{name}"]\nca = "{self.stage.ca}"\naddress = "{upstream.address}"\n'
                        for name in ("keyed.test", "echo.test"))
        self.stage.write_config(upstream.address, harness.UNHURRIED + hosts,
                                approve=f'resolvers = ["{host}:{port}"]\n' + harness.approval("keyed.test"))


def streams(case):
    """Whether its fault shows in the middle of its body, some of which may have gone upstream."""
    return case.name.startswith("G15 ") or case.name == "G20 chunks of one byte more"


REFUSED = [case for case in front.http_cases() + front.borrowed_cases() if case.reason != "-"]


class Requests(Entries):
    ways = INSIDE

    def tasks(self, cases):
        return [way.task(case) for case in cases for way in self.ways if way.is_for(case)]

    def test_every_case_is_refused_with_its_reason_and_hides_no_request(self):
        tasks = self.tasks([case for case in REFUSED if not streams(case)])
        self.send(tasks)
        for task in tasks:
            self.assertEqual(task.end, "left" if task.leaves else "closed", task.name)
            self.assert_told(task)

    def test_a_body_that_turns_out_malformed_is_never_whole_upstream(self):
        for batch in self.batches(self.tasks([case for case in REFUSED if streams(case)])):
            outcome = self.carry_out(batch)
            begun = {line["request"] for line in outcome.events("begin")}
            told = [line for line in outcome.audit if line["kind"] in ("refused", "end")]
            self.assertEqual([line["reason"] for line in told], [task.reasons[0] for task in batch], str(outcome))
            self.assertEqual({line["request"] for line in outcome.events("end")}, begun)
            self.assertEqual(outcome.events("coalesced"), [], str(outcome))
            self.account_for(outcome.events("refused"))
        self.assertEqual(self.upstream.whole_bodies, 0)
        self.assertEqual({request.target for request in self.upstream.requests}, {"/a"})

    def test_the_controls_are_carried_out_as_they_were_judged(self):
        for clear in (False, True):
            if clear:
                self.use(web.Web())
            ways = [way for way in self.ways if clear != (way.tls or way.connect == 443)]
            self.check_controls([(way, case) for case in front.http_cases() for way in ways
                                 if case.reason == "-" and way.is_for(case)])

    def check_controls(self, chosen):
        tasks = [way.task(case, behind=False, reasons=[]) for way, case in chosen]
        outcome = self.carry_out(tasks)
        self.assertEqual(outcome.events("refused"), [], str(outcome))
        self.assertEqual([line["reason"] for line in outcome.events("end")], ["none"] * len(tasks), str(outcome))
        for (_, case), task, request in zip(chosen, tasks, self.upstream.requests, strict=True):
            first, *fields = case.sent.decode().split("\r\n")
            fields = [(name.lower(), value) for name, value in (field.split(": ", 1) for field in fields)]
            self.assertEqual((f"{request.method} {request.target} HTTP/1.1", request.headers), (first, fields), task.name)


class RequestsServed(Requests, front.ServedCase):
    ways = SERVED


class Proxy(Entries, front.ServedCase):
    """The explicit proxy's own forms, tunnels, and hosts."""

    def test_what_cannot_be_read_in_one_way(self):
        behind = b"GET http://forge.test/logout HTTP/1.1\r\nHost: forge.test\r\n\r\n"
        tasks = [Task(name, [data + behind], [reason], door="proxy", sni="")
                 for name, reason, data in front.proxy_requests() if " " not in reason]
        self.send(tasks)
        for task in tasks:
            self.assert_told(task)

    def test_what_comes_in_a_tunnel(self):
        # One that is allowed, and in which no more is said.
        cases = [case._replace(reason="client_closed") if case.reason == "-" and case.said[:3] != b"GET" else case
                 for case in front.tunnels() if case.said[:3] != b"GET" or case.reason != "-"]
        tasks = [Task(case.name, [case.said], [case.reason], door="proxy", connect=case.connect, sni="", ends=True)
                 for case in cases]
        self.send(tasks)
        self.assertGreater(len(tasks), 30)

    def test_spellings_of_a_host(self):
        # What is good says what is refused then, so that no spelling goes further than the name's own.
        tasks, hello = [], b"".join(Hello(b"forge.test").records())
        for host, reason in front.hosts():
            def add(name, data, door, good, host=host, reason=reason, **more):
                tasks.append(Task(f"{host}, {name}", [data], [good if reason == "-" else reason], door=door, sni="", **more))
            get = b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
            add("CONNECT", hello, "proxy", "client_closed", connect=CONNECT % (host + b":443"), ends=True)
            add("a URL", b"GET http://" + host + b"/b" + get, "proxy", BEHIND)
            add("Host", b"GET /b" + get, "http", BEHIND)
            if reason != "-":
                # Who stays for what is said in words, inside, waits as long as a handshake may take.
                add("SNI", b"".join(Hello(host).records()), "tls", "", hangs_up=True)
        self.send(tasks)

    def test_handshakes_that_come_to_nothing(self):
        tasks, alerts = [], {}
        for task, alert in test_front.Handshakes.tasks():
            found = [dataclasses.replace(task, name=f"{task.name}, in a tunnel", door="proxy",
                                         connect=CONNECT % b"forge.test:443")]
            # Who has ended before it is known whose it is is not served; of a name that is refused there is no alert.
            if task.reasons not in (["client_closed"], ["host_not_allowed"]):
                found.append(dataclasses.replace(task, name=f"{task.name}, at a door", door="tls", ends=False))
            tasks += found
            alerts |= {other.name: alert for other in found}
        encrypted = b"".join(Hello(b"pin.test").replace(front.ECH, bytes(200)).records())
        tasks += [Task("D12 encrypted hello, spliced", [encrypted], ["ech"], door="tls", sni=""),
                  Task("D12 in a tunnel", [encrypted], ["ech"], door="proxy", connect=CONNECT % b"pin.test:443", sni=""),
                  Task("C9 not the spliced name", Hello(b"forge.test").records(), ["sni_mismatch"], door="proxy",
                       connect=CONNECT % b"pin.test:443", sni="")]
        self.send(tasks)
        for task in tasks:
            self.assertNotEqual(task.end, "silent", task.name)
            if alert := alerts.get(task.name, test_front.UNRECOGNIZED_NAME):
                self.assertEqual((task.answer[:1], task.answer[-1:], len(task.answer)), (b"\x15", bytes([alert]), 7), task.name)

    def test_a_name_is_asked_for_when_its_request_is_allowed(self):
        tasks = [Task("allowed", [b"GET http://api.ok.test/ HTTP/1.1\r\nHost: api.ok.test\r\n\r\n"], [], door="proxy", sni="",
                      leaves=True)]
        outcome = self.carry_out(tasks)
        self.assertEqual([line["reason"] for line in outcome.events("end")], ["upstream_unresolved"], str(outcome))
        self.assertEqual(set(self.asked.read_text().split()), {"api.ok.test"})


# To the proxy and back, as a tool's own proxy does; and the client beside it.
RELAY = r'''
import socket, threading

def pump(source, sink):
    try:
        while piece := source.recv(65536):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass

def serve(listener):
    while True:
        client, _ = listener.accept()
        proxy = socket.create_connection(("198.18.0.1", 3128))
        for pair in ((client, proxy), (proxy, client)):
            threading.Thread(target=pump, args=pair, daemon=True).start()

threading.Thread(target=serve, args=(socket.create_server(("127.0.0.1", 9999)),), daemon=True).start()
exec(open("client.py").read())
'''


class Relay(Entries):
    """C16: who asks is the sandbox, whichever of its programs passes it on."""

    client = "relay.py"

    def test_a_relay_inside_has_the_decisions_that_it_would_have_itself(self):
        self.stage.put("relay.py", RELAY)
        ways = {"direct": ("198.18.0.1", 3128), "relayed": ("127.0.0.1", 9999)}
        tasks = {way: [Task(f"{case.name}, {way}", [case.said], [case.reason], address=address, port=port, connect=case.connect,
                            sni="", ends=True) for case in front.tunnels() if case.reason != "-"]
                 for way, (address, port) in ways.items()}
        self.send(tasks["direct"] + tasks["relayed"])
        for direct, relayed in zip(tasks["direct"], tasks["relayed"]):
            told = [{key: value for key, value in task.lines[0].items() if key not in ("time", "seq", "session", "request")}
                    for task in (direct, relayed)]
            self.assertEqual(told[0], told[1], relayed.name)
            self.assertEqual(*(re.sub(rb"request [0-9a-f]{16}", b"", task.answer) for task in (direct, relayed)), relayed.name)


class Tcp(Entries):
    """Around the one port of the one host that [[tcp]] names: in a sandbox by its address."""

    def test_another_port_and_another_host_are_refused(self):
        hello = b"".join(Hello(b"echo.test").records())
        tasks = [Task(f"{host}:{port}", [hello], ["port_not_allowed"], address=host, port=port, sni="", hangs_up=port == 443)
                 for host, port in (("echo.test", 7776), ("echo.test", 7778), ("echo.test", 1), ("echo.test", 65535),
                                    ("echo.test", 443), ("forge.test", 7777), ("pin.test", 7777))]
        tasks += [Task(f"{address}:7777", [hello], ["ip_literal"], address=address, port=7777, sni="")
                  for address in ("192.0.2.1", "10.0.0.1", "169.254.169.254", "2001:db8::1", "198.18.0.200")]
        tasks.append(Task("echo.test:80", [b"GET / HTTP/1.1\r\nHost: echo.test\r\nConnection: close\r\n\r\n"],
                          ["port_not_allowed"], address="echo.test", port=80, sni=""))
        self.send(tasks)
        for task in tasks:
            if task.port not in (80, 443):
                self.assertEqual((task.answer, task.end), (b"", "reset"), task.name)


class TcpServed(Entries, front.ServedCase):
    """The same by CONNECT."""

    def test_another_port_and_another_host_are_refused(self):
        tasks = [Task(f"CONNECT {host}:7777", [b"x"], ["port_not_allowed" if reason == "-" else reason], door="proxy",
                      connect=CONNECT % (host + b":7777"), sni="") for host, reason in front.hosts()]
        tasks += [Task(target, [b"x"], [reason], door="proxy", connect=CONNECT % target.encode(), sni="")
                  for target, reason in (("echo.test:7776", "port_not_allowed"), ("echo.test:77777", "bad_request"),
                                         ("echo.test:443", "port_not_allowed"), ("echo.test:80", "port_not_allowed"),
                                         ("xecho.test:7777", "host_not_allowed"), ("a.echo.test:7777", "host_not_allowed"))]
        tasks.append(Task("a URL", [b"GET http://echo.test:7777/ HTTP/1.1\r\nHost: echo.test:7777\r\n"
                                     b"Connection: close\r\n\r\n"], ["port_not_allowed"], door="proxy", sni=""))
        self.send(tasks)
        for task in tasks:
            self.assert_told(task)


if __name__ == "__main__":
    harness.main()
