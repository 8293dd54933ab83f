#!/usr/bin/python3
"""The catalogue of what a front must refuse, against a running gate. gate/catalogue_test.cc has the same tables."""

import json
import re
import unittest

import front
import harness
from front import Hello, Task, in_pieces, server_name
from harness import git_rule, policy

FETCH = policy(git_rule("forge.test/acme/widget", "fetch"))
# Refused politely: the connection stays.
POLITE = b"GET /login HTTP/1.1\r\nHost: forge.test\r\n\r\n"
# What a smuggler hopes to have served. Where the connection stays, it is.
FOLLOW_UP = b"GET /logout HTTP/1.1\r\nHost: forge.test\r\nConnection: close\r\n\r\n"

UNRECOGNIZED_NAME, NO_PROTOCOL, PROTOCOL_VERSION = 112, 120, 70


def reasons_of(reason, data):
    """Of a request and the one behind it, which is served when the first was clear and has no body that was not read."""
    return [reason, "not_git"] if reason not in front.ENDING and data.endswith(b"\r\n\r\n") else [reason]


class Requests(front.FrontCase):
    def setUp(self):
        super().setUp()
        self.stage.write_config(self.forge.address, harness.UNHURRIED)
        self.stage.write_policy(FETCH)
        self.refused = [case for case in front.requests() if case[1] != "-"]

    def test_every_case_is_refused_with_its_reason_and_hides_no_request(self):
        tasks = [Task(name, [data + FOLLOW_UP], reasons_of(reason, data)) for name, reason, data in self.refused]
        self.send(tasks)
        for task in tasks:
            self.assertEqual(task.end, "closed", task.name)
            if task.reasons[0] != "lfs_not_granted":  # it has a shape of its own
                self.assert_told(task)

    def test_so_it_is_on_a_kept_alive_connection_and_however_the_bytes_are_cut(self):
        tasks = [Task(name, in_pieces(data + FOLLOW_UP, name), ["not_git", *reasons_of(reason, data)], first=POLITE)
                 for name, reason, data in self.refused]
        self.send(tasks)
        for task in tasks:
            self.assertEqual(task.end, "closed", task.name)
            self.assertEqual(len(task.answers), len(task.reasons), task.name)

    def test_the_controls_are_carried_out(self):
        good = [(name, data) for name, reason, data in front.requests() if reason == "-"]
        closing = b"GET /logout HTTP/1.1\r\nHost: forge.test\r\nConnection: close\r\n\r\n"
        tasks = [Task(name, [data + closing], ["not_git"]) for name, data in good]
        outcome = self.carry_out(tasks)
        self.assertEqual(len(outcome.events("begin")), len(good))
        self.assertEqual(len(outcome.events("end")), len(good))
        for task in tasks:
            self.assertEqual(len(task.answers), 2, f"{task.name}: {task.answer}")
            if not task.name.startswith("good rpc"):  # their bodies are no request of git's, which the forge says
                self.assertTrue(task.answers[0].startswith(b"HTTP/1.1 200 "), f"{task.name}: {task.answer}")
        self.assertEqual([line["reason"] for line in outcome.events("refused")], ["not_git"] * len(good))
        self.account_for(outcome.events("refused"))
        # What the client said of itself went nowhere, and the credential is the one that the policy names.
        for row in self.forge.log():
            self.assertEqual((row.host, row.authorized, row.cookie, row.expect), ("forge.test", True, "", ""), row)


class Hosts(front.FrontCase):
    def setUp(self):
        super().setUp()
        self.stage.write_config(self.forge.address, harness.UNHURRIED)
        self.stage.write_policy(FETCH)

    def test_spellings_of_a_host_in_a_tls_name(self):
        tasks = []
        for name, reason in front.hosts():
            wanted = "client_closed" if reason == "-" else reason
            tasks.append(Task(str(name), Hello(name).records(), [wanted], sni="", ends=True))
        self.send(tasks)
        for task in tasks:
            if task.reasons == ["client_closed"]:
                self.assertEqual(task.answer[:1], b"\x16", task.name)  # a ServerHello
            else:
                self.assertEqual(task.answer, bytes([0x15, 3, 3, 0, 2, 2, UNRECOGNIZED_NAME]), task.name)
            # Whatever the bytes are, the log shows them escaped.
            self.assertRegex(task.lines[0]["detail"], r"^[ -~]*$", task.name)

    def test_spellings_of_a_host_in_plain_http(self):
        # A name that is another than the address's is a mismatch, whatever the policy says of it.
        reasons = {"-": ["plain_http", "plain_http"], "host_not_allowed": ["host_mismatch"]}
        tasks = [Task(str(name), [b"GET / HTTP/1.1\r\nHost: " + name + b"\r\n\r\n" + FOLLOW_UP],
                      reasons.get(reason, [reason]), port=80, sni="", ends=True) for name, reason in front.hosts()]
        self.send(tasks)
        for task in tasks:
            self.assert_told(task)


class Handshakes(front.FrontCase):
    def setUp(self):
        super().setUp()
        self.stage.write_config(self.forge.address, harness.UNHURRIED)
        self.stage.write_policy(FETCH)

    @staticmethod
    def tasks():
        """[(task, the alert or None)]"""
        def hello(name, reason, alert, made, **records):
            return Task(name, made.records(**records), [reason], sni="", ends=True), alert
        old = Hello()
        old.version = b"\x03\x02"
        oldest = Hello()
        oldest.version = b"\x03\x00"
        name = server_name(b"forge.test")
        stuffed = [(0x5a5a, bytes(8000)), (0x4a4a, bytes(5000))]
        padded, huge = Hello(), Hello()
        padded.extensions[:0] = stuffed
        huge.extensions[:0] = [(0x4a4a, bytes(60_000))]
        cases = [
            hello("D5 two names", "bad_request", UNRECOGNIZED_NAME,
                  Hello().replace(front.SERVER_NAME, server_name(b"forge.test", b"evil.test"))),
            hello("D5 the same name twice", "bad_request", UNRECOGNIZED_NAME,
                  Hello().replace(front.SERVER_NAME, server_name(b"forge.test", b"forge.test"))),
            hello("D5 two extensions", "bad_request", UNRECOGNIZED_NAME, Hello().replace(front.SERVER_NAME, name, name)),
            hello("D5 two extensions, the second evil", "bad_request", UNRECOGNIZED_NAME,
                  Hello().replace(front.SERVER_NAME, name, server_name(b"evil.test"))),
            hello("D5 another kind of name", "bad_request", UNRECOGNIZED_NAME,
                  Hello().replace(front.SERVER_NAME, server_name(b"forge.test", kind=1))),
            hello("D7 no name", "no_sni", UNRECOGNIZED_NAME, Hello().replace(front.SERVER_NAME)),
            hello("D7 empty name", "no_sni", UNRECOGNIZED_NAME, Hello().replace(front.SERVER_NAME, server_name(b""))),
            hello("D7 empty list", "no_sni", UNRECOGNIZED_NAME, Hello().replace(front.SERVER_NAME, b"\0\0")),
            hello("D7 empty extension", "bad_request", UNRECOGNIZED_NAME, Hello().replace(front.SERVER_NAME, b"")),
            hello("D8 list longer than it is", "bad_request", UNRECOGNIZED_NAME,
                  Hello().replace(front.SERVER_NAME, b"\xff" + name)),
            hello("D9 in records of one byte, allowed", "client_closed", None, Hello(), size=1),
            hello("D9 in records of one byte, denied", "host_not_allowed", UNRECOGNIZED_NAME, Hello(b"evil.test"), size=1),
            hello("D9 the name behind 13,000 bytes, allowed", "client_closed", None, padded),
            hello("D11 64 KiB", "too_large", None, huge, size=4096),
            hello("D12 encrypted hello, ignored", "client_closed", None, Hello().replace(front.ECH, bytes(200))),
            hello("D12 encrypted hello, the outer name denied", "host_not_allowed", UNRECOGNIZED_NAME,
                  Hello(b"evil.test").replace(front.ECH, bytes(200))),
            hello("D13 TLS 1.1", "not_tls", PROTOCOL_VERSION, old.replace(front.SUPPORTED_VERSIONS)),
            hello("D13 SSL 3.0", "not_tls", PROTOCOL_VERSION, oldest.replace(front.SUPPORTED_VERSIONS)),
            hello("D22 HTTP/2 only", "bad_request", NO_PROTOCOL, Hello(alpn=["h2"])),
            hello("D22 HTTP/3 only", "bad_request", NO_PROTOCOL, Hello(alpn=["h3"])),
            hello("C9 a name that another address is for", "host_not_allowed", UNRECOGNIZED_NAME, Hello(b"evil.test")),
        ]
        single = [bytes([byte]) for record in Hello(b"evil.test").records() for byte in record]
        cases.append((Task("D9 byte by byte", single, ["host_not_allowed"], sni="", ends=True), UNRECOGNIZED_NAME))
        for what, data, reason in (
                ("C6 SSH", b"SSH-2.0-OpenSSH_9.2\r\n", "not_tls"), ("plain HTTP", POLITE, "not_tls"),
                ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "not_tls"), ("zeros", bytes(64), "not_tls"),
                ("an alert first", b"\x15\x03\x03\0\x02\x02\x28", "not_tls"),
                ("data first", b"\x17\x03\x03\0\x04data", "not_tls"),
                ("a record of 64 KiB", b"\x16\x03\x01\xff\xff" + bytes(100), "too_large"),
                ("D13 SSLv2", b"\x80\x2e\x01\x03\x03\0\x15\0\0\0\x10" + b"\7" * 37, "not_tls"),
                ("C8 nothing", b"", "client_closed")):
            cases.append((Task(what, [data], [reason], sni="", ends=True), None))
        return cases

    def test_handshakes_that_come_to_nothing(self):
        cases = self.tasks()
        self.send([task for task, _ in cases])
        for task, alert in cases:
            self.assertNotEqual(task.end, "silent", task.name)
            if alert is not None:
                self.assertEqual((task.answer[:1], task.answer[-1:]), (b"\x15", bytes([alert])), f"{task.name} {task.answer}")
                self.assertEqual(len(task.answer), 7, task.name)

    def test_ports_that_no_door_is_for(self):
        tasks = [Task(f"C1 port {port}", [b"SSH-2.0-x\r\n"], ["port_not_allowed"], port=port, sni="")
                 for port in (21, 22, 25, 81, 444, 853, 5432, 8080, 8443, 65535)]
        tasks += [Task(f"{address} {port}", [POLITE], [reason], address=address, port=port, sni="", ends=True)
                  for address, port, reason in (("169.254.169.254", 443, "not_tls"), ("192.0.2.1", 8080, "ip_literal"),
                                                ("10.0.0.1", 22, "ip_literal"), ("2001:db8::1", 853, "ip_literal"),
                                                ("198.18.0.200", 22, "ip_literal"))]
        self.send(tasks)
        for task in tasks:
            if task.reasons != ["not_tls"]:
                self.assertEqual((task.answer, task.end), (b"", "reset"), task.name)


ASK_DNS = r'''
import json, socket, struct, sys
def ask(name, kind, klass):
    wire = b"".join(bytes([len(label)]) + label for label in name.encode().split(b".")) + b"\0"
    query = struct.pack(">6H", 7, 0x100, 1, 0, 0, 1) + wire + struct.pack(">2H", kind, klass)
    query += b"\0" + struct.pack(">2HIH", 41, 1232, 0, 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(30)
        client.connect(("198.18.0.1", 53))
        client.send(query)
        return client.recv(4096).decode("latin-1")
print(json.dumps([ask(*question) for question in json.load(open("questions.json"))]))
'''


class Errors(front.FrontCase):
    """One table of reasons (docs/errors.md), whoever asks and however."""

    def setUp(self):
        super().setUp()
        self.stage.write_config(self.forge.address, harness.UNHURRIED)
        self.stage.write_policy(FETCH)

    def test_a_program_that_asks_for_json_gets_the_same_facts(self):
        path = "/acme/other/info/refs?service=git-upload-pack"
        tasks = [Task(accept, [f"GET {path} HTTP/1.1\r\nHost: forge.test\r\nAccept: {accept}\r\n"
                               "Connection: close\r\n\r\n".encode()], ["repo_not_granted"])
                 for accept in ("application/json", "*/*")]
        self.send(tasks)
        as_json, as_text = (task.answer.split(b"\r\n\r\n", 1)[1].decode() for task in tasks)
        self.assertIn(b"Content-Type: application/json\r\n", tasks[0].answer)
        self.assertIn(b"Content-Type: text/plain\r\n", tasks[1].answer)
        facts = json.loads(as_json)
        self.assertEqual(facts["error"], "repo_not_granted")
        self.assertEqual(facts["status"], 403)
        self.assertEqual(facts["message"], front.REASONS["repo_not_granted"][1])
        self.assertEqual(facts["request"], tasks[0].lines[0]["request"])
        told = f"sallyport: {facts['message']}\n{facts['particulars']}\nrequest {tasks[1].lines[0]['request']}\n"
        self.assertEqual(as_text, told)

    def test_the_same_bytes_whether_the_repository_exists_or_not_but_for_its_name_and_the_id(self):
        tasks = [Task(name, [f"GET /acme/{name}/info/refs?service={service} HTTP/1.1\r\nHost: forge.test\r\n"
                             "Connection: close\r\n\r\n".encode()], ["repo_not_granted"])
                 for service in ("git-upload-pack", "git-receive-pack") for name in ("other", "ghost")]
        self.send(tasks)
        plain = [re.sub(rb"request [0-9a-f]{16}", b"request ID", task.answer.replace(task.name.encode(), b"NAME"))
                 for task in tasks]
        self.assertEqual(plain[0], plain[1])
        self.assertEqual(plain[2], plain[3])

    def test_the_same_bytes_whether_a_denied_host_exists_or_not_but_for_the_id(self):
        names = ("github.com", "does-not-exist.test")
        tls = [Task(name, Hello(name.encode()).records(), ["host_not_allowed"], sni="", ends=True) for name in names]
        clear = [Task(name, [f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode()], ["host_mismatch"], port=80, sni="")
                 for name in names]
        self.send([*tls, *clear])
        self.assertEqual(tls[0].answer, tls[1].answer)
        for task in clear:
            self.assert_told(task)
        self.assertEqual(*(re.sub(rb"request [0-9a-f]{16}", b"request ID", task.answer) for task in clear))

    def test_a_dns_refusal_says_why_and_under_which_id(self):
        questions = [("evil.test", 1, 1), ("127.0.0.1", 1, 1), ("forge.test", 255, 1), ("forge.test", 252, 1),
                     ("version.bind", 16, 3)]
        reasons = ["host_not_allowed", "ip_literal", "bad_dns_query", "bad_dns_query", "bad_dns_query"]
        self.stage.put("ask.py", ASK_DNS)
        self.stage.put("questions.json", json.dumps(questions), 0o644)
        before = self.stage.traffic()
        outcome = self.assert_ok(self.run_inside(["/usr/bin/python3", "ask.py"], ("--quiet",)))
        refused = outcome.events("refused")
        self.assertEqual([line["reason"] for line in refused], reasons)
        self.assert_all_refused(outcome, reasons, len(reasons), before)
        for answer, line, reason in zip(json.loads(outcome.stdout), refused, reasons):
            text = f"{front.REASONS[reason][1]} request {line['request']}"
            error = b"\x00\x0f" + (2 + len(text)).to_bytes(2, "big") + b"\x00\x0f" + text.encode()  # RFC 8914
            self.assertTrue(answer.encode("latin-1").endswith(error), answer)


if __name__ == "__main__":
    harness.main()
