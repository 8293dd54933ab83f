#!/usr/bin/python3
"""An upstream that is hostile: what it answers, how it ends, how it shakes hands. Both ways lead to it: with the
credential through the vault, and without one from the gate.

Whatever it does, the client gets a plain sentence with a request's id (or sees that the answer was cut), the audit log
has one end with the reason, the connection serves no other request, and the credential was sent at most once.
"""

import collections
import json
import ssl
import time

import harness
import answers
import faulty
from faulty import FaultyUpstream
from harness import E2E, approval, git_rule, policy
from pki import PrivateCa

# Asks for every "METHOD URL" of asks.json: the first list one by one, on a connection for each host as long as the gate
# keeps it, the second all at once. (New connections are limited in number.) Tells what came as JSON.
CLIENT = r'''
import concurrent.futures, http.client, json, ssl, sys, urllib.parse

trust = ssl.create_default_context()

def ask(line, connections):
    method, url = line.split(" ", 1)
    parts = urllib.parse.urlsplit(url)
    if parts.hostname not in connections:
        connections[parts.hostname] = http.client.HTTPSConnection(parts.hostname, timeout=60, context=trust)
    connection = connections[parts.hostname]
    body, headers = None, {}
    if method == "POST":
        body, headers = b"0011want something", {"Content-Type": "application/x-git-upload-pack-request"}
    connection.request(method, parts.path + ("?" + parts.query if parts.query else ""), body, headers)
    answer = connection.getresponse()
    whole = True
    try:
        text = answer.read()
    except (http.client.IncompleteRead, ConnectionError) as cut:
        text, whole = getattr(cut, "partial", b""), False
        connection.close()
    return {"line": line, "status": answer.status, "headers": answer.getheaders(), "text": text.decode("latin-1"),
            "whole": whole}

one_by_one, at_once = json.load(open("asks.json"))
with concurrent.futures.ThreadPoolExecutor(max(1, len(at_once))) as pool:
    later = [pool.submit(ask, line, {}) for line in at_once]
    kept = {}
    told = [ask(line, kept) for line in one_by_one] + [each.result() for each in later]
json.dump(told, sys.stdout)
'''

REASONS = {  # as the table of reasons has them: status, and the beginning of the sentence
    "upstream_malformed": (502, "The upstream's answer is malformed."),
    "upstream_truncated": (502, "The upstream's answer ended too early."),
    "upstream_closed": (502, "The upstream closed the connection."),
    "upstream_timeout": (504, "The upstream took too long to answer."),
    "upstream_redirect": (502, "The upstream redirects elsewhere; redirects are not followed."),
    "upstream_refused_credential": (502, "The upstream refused the gateway's credential"),
    "upstream_error": (502, "The upstream answered with an error."),
    "upstream_unreachable": (502, "The upstream cannot be reached."),
    "upstream_tls": (502, "The upstream's TLS certificate or handshake is not acceptable."),
}
# Nothing else of an answer's head reaches a client.
CLIENT_HEADERS = {"content-type", "cache-control", "content-length", "transfer-encoding", "connection", "date"}
TIMEOUTS = '\n[timeouts]\nfirst_byte = "3s"\nidle = "3s"\ntls = "3s"\n'
ADVERTISEMENT = (b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"
                 b"Content-Length: 38\r\n\r\n001e# service=git-upload-pack\n00000000")

# What takes time, or has no end: {name: (fault, how it ends, reason)}.
SLOW = {
    "silence": (faulty.hang(), "refused", "upstream_timeout"),
    "a-head-that-drips": (faulty.say_for_ever(b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.2), "refused", "upstream_timeout"),
    "interim-answers-that-drip": (faulty.say_for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.5), "refused",
                                  "upstream_timeout"),
    "a-head-without-end": (faulty.say_for_ever(b"HTTP/1.1 200 OK\r\n", b"X: evil\r\n" * 500), "refused",
                           "upstream_malformed"),
    "a-line-without-end": (faulty.say_for_ever(b"HTTP/1.1 200 ", b"evil" * 1000), "refused", "upstream_malformed"),
    "interim-answers-without-end": (faulty.say_for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), "refused",
                                    "upstream_malformed"),
    "a-body-that-stalls": (faulty.say(ADVERTISEMENT[:-8]), "cut", "upstream_timeout"),
    "chunks-that-stall": (faulty.say(ADVERTISEMENT.replace(b"Content-Length: 38", b"Transfer-Encoding: chunked")
                                     .replace(b"001e#", b"26\r\n001e#")), "cut", "upstream_timeout"),
    "a-chunk-size-that-drips": (faulty.say_for_ever(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n", b"0", 0.05), "cut", "upstream_malformed"),
    "trailers-without-end": (faulty.say_for_ever(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: evil\r\n" * 500), "cut", "upstream_malformed"),
}


def how_it_ends(answer):
    """(how, reason) of an answer of the file."""
    if answer.outcome in ("whole", "last"):
        reason = None if answer.status == 200 else \
            "upstream_refused_credential" if answer.status in (401, 403) else \
            "upstream_redirect" if 300 <= answer.status < 400 else "upstream_error"
        return ("refused" if reason else "whole"), reason
    how = "cut" if answer.outcome.startswith("cut-") else "refused"
    return how, "upstream_" + answer.outcome.removeprefix("cut-")


class HostileUpstream(E2E):
    def ask(self, one_by_one, at_once=(), then=""):
        """Runs the client inside, and then a script; returns ({line: what it was told}, {line: ends}, outcome)."""
        self.stage.put("client.py", CLIENT)
        self.stage.put("asks.json", json.dumps([list(one_by_one), list(at_once)]))
        outcome = self.run_inside("/usr/bin/python3 client.py >told.json\n" + then)
        self.assert_ok(outcome)
        told = {each["line"]: each for each in json.loads((self.stage.work / "told.json").read_text())}
        begun = {line["request"]: f"{line['method']} https://{line['host']}{line['path']}"
                 for line in outcome.events("begin")}
        ends = collections.defaultdict(list)
        for line in outcome.events("end"):
            ends[begun[line["request"]]].append(line)
        self.assertEqual(outcome.events("refused"), [], "the policy refuses nothing here")
        return told, ends, outcome

    def check(self, line, told, ends, how, reason):
        """`how`: "whole", "refused" or "cut"."""
        where = f"{line}\n{told}\n{ends}"
        self.assertEqual(len(ends), 1, where)
        self.assertEqual(ends[0].get("reason", "none"), reason or "none", where)
        self.assertLessEqual({name.lower() for name, _ in told["headers"]}, CLIENT_HEADERS, where)
        self.assertNotIn("evil", json.dumps(told["headers"]), where)
        self.assertEqual(told["whole"], how != "cut", where)
        if how == "refused":
            status, sentence = REASONS[reason]
            # git reads the answer to a POST only when it is a 200.
            self.assertEqual(told["status"], 200 if line.startswith("POST") else status, where)
            self.assertIn("sallyport: " + sentence, told["text"], where)
            self.assertIn("request " + ends[0]["request"], told["text"], where)
            self.assertNotIn("evil", told["text"], where)
        else:
            self.assertEqual(told["status"], 200, where)


class Answers(HostileUpstream):
    def serve(self, script):
        ca = PrivateCa(self.stage.root / "hostile-ca")
        upstream = FaultyUpstream(ca.leaf("forge.test"), script=script)
        self.addCleanup(upstream.stop)
        self.stage.write(self.stage.ca, ca.pem.read_text(), self.stage.runner_uid)
        self.stage.write_config(upstream.address, TIMEOUTS + harness.UNHURRIED)
        self.stage.write_policy(policy(git_rule("forge.test/held/*"), git_rule("forge.test/open/*", credential=None)))
        return upstream

    def check_connections(self, upstream, reusable, twice=()):
        """A connection that served what is not `reusable` served nothing afterwards, and nobody else's request."""
        for served in upstream.served:
            owners = {request.repository.split("/")[0] for request in served}
            self.assertLessEqual(len(owners), 1, served)
            for request in served[:-1]:
                self.assertIn(request.repository.split("/")[1], reusable, served)
        count = collections.Counter((r.method, r.repository) for r in upstream.requests)
        self.assertEqual({each for each, times in count.items() if times != 1}, set(twice))
        for request in upstream.requests:
            self.assertEqual(bool(request.authorization), request.repository.startswith("held/"), request)

    def test_each_answer_of_the_file_by_gate_and_vault(self):
        # Those that leave their connection open come last: what follows on it is then no hostile one's.
        cases = sorted(answers.read(), key=lambda answer: answer.outcome == "whole")
        upstream = self.serve({c.name: faulty.say(c.data, c.end) for c in cases})
        target = "https://forge.test/%s/%s/info/refs?service=git-upload-pack"
        lines = {f"GET {target % (owner, case.name)}": case for owner in ("held", "open") for case in cases}
        lines |= {f"POST https://forge.test/held/{case.name}/git-upload-pack": case
                  for case in cases if how_it_ends(case)[0] == "refused" and case.outcome != "whole"}
        told, ends, outcome = self.ask(lines)
        for line, case in lines.items():
            with self.subTest(line):
                self.check(line, told[line], ends[line], *how_it_ends(case))
        self.check_connections(upstream, {case.name for case in cases if case.outcome == "whole"})
        # Hardly a connection more than is needed either: what is whole is served by one for each owner, unless a
        # refused answer has a body, which nobody reads.
        single = sum(case.outcome != "whole" for case in lines.values())
        unread = sum(case.outcome == "whole" and how_it_ends(case)[0] == "refused" and not case.data.endswith(b"\r\n\r\n")
                     for case in lines.values())
        self.assertIn(len(upstream.served), range(single + 2, single + 2 + unread + 1))
        # A use of the credential is written down for each request that had it.
        uses = sum(1 for request in upstream.requests if request.authorization)
        self.assertEqual(len(outcome.events("credential")), uses)
        self.assertEqual(outcome.events("alarm"), [])

    def test_what_takes_time_or_has_no_end(self):
        upstream = self.serve({name: fault for name, (fault, _, _) in SLOW.items()})
        lines = {f"GET https://forge.test/{owner}/{name}/info/refs?service=git-upload-pack": (how, reason)
                 for owner in ("held", "open") for name, (_, how, reason) in SLOW.items()}
        told, ends, _ = self.ask([], lines)
        for line, (how, reason) in lines.items():
            with self.subTest(line):
                self.check(line, told[line], ends[line], how, reason)
        self.check_connections(upstream, ())

    def test_stock_git_shows_why(self):
        cases = [c for c in answers.read() if c.name in (
            "http-0.9", "switching-protocols", "two-lengths", "length-and-chunked", "folded-line", "an-endless-head",
            "redirect-301", "unauthorized", "end-inside-a-field", "chunk-extension", "end-inside-the-body")]
        upstream = self.serve({c.name: faulty.say(c.data, c.end) for c in cases})
        for owner in ("held", "open"):
            for case in cases:
                self.stage.put(f"ask-{owner}-{case.name}", "")
        outcome = self.assert_ok(self.run_inside(
            "for ask in ask-*; do path=$(echo $ask | sed 's/ask-\\([a-z]*\\)-/\\1\\//'); echo \"== $path\"\n"
            "GIT_TERMINAL_PROMPT=0 git ls-remote https://forge.test/$path 2>&1 && echo SUCCEEDED; done; true"))
        shown = dict(part.split("\n", 1) for part in outcome.stdout.split("== ")[1:])
        for owner in ("held", "open"):
            for case in cases:
                text = shown[f"{owner}/{case.name}"]
                with self.subTest(f"{owner}/{case.name}"):
                    how, reason = how_it_ends(case)
                    self.assertNotIn("SUCCEEDED", text)
                    self.assertIn("fatal: ", text)
                    if how == "refused":
                        self.assertIn("remote: sallyport: " + REASONS[reason][1], text)
                        self.assertRegex(text, "remote: request [0-9a-f]{16}")
                    for never in ("evil", "could not read Username", "Authentication failed", "redirecting to"):
                        self.assertNotIn(never, text)
        self.check_connections(upstream, {case.name for case in cases if case.outcome == "whole"})


def only(version):
    def tune(tls):
        tls.set_ciphers("ALL:@SECLEVEL=0")
        tls.minimum_version = version
        tls.maximum_version = version
    return tune


def speaks_h2(tls):
    tls.set_alpn_protocols(["h2"])


class Handshakes(HostileUpstream):
    """Each is a host of its own, with the same private authority. No byte of a request reaches one that is bad."""

    def cases(self, ca):
        """{name: (upstream's arguments, how it ends, reasons)}"""
        good = ca.leaf(*(f"{name}.test" for name in ("good", "asks", "wants", "wants12", "h2", "early", "tls12")))

        def asks_for_certificate(mode, newest=None):
            def tune(tls):
                tls.load_verify_locations(str(ca.pem))
                tls.verify_mode = mode
                if newest:
                    tls.maximum_version = newest
            return tune

        def bad(name, **how):
            return {"leaf": ca.leaf(f"{name}.test"), **how}, "refused", {"upstream_tls"}

        def bad_leaf(leaf):
            return {"leaf": leaf}, "refused", {"upstream_tls"}

        def shakes(name, handshake, *reasons):
            return {"leaf": ca.leaf(f"{name}.test"), "handshake": handshake}, "refused", set(reasons) or {"upstream_tls"}

        stranger = PrivateCa(self.stage.root / "stranger-ca")
        return {
            "good": ({"leaf": good}, "whole", {None}),
            "tls12": ({"leaf": good, "tune": only(ssl.TLSVersion.TLSv1_2)}, "whole", {None}),
            "asks": ({"leaf": good, "tune": asks_for_certificate(ssl.CERT_OPTIONAL)}, "whole", {None}),
            "h2": ({"leaf": good, "tune": speaks_h2}, "whole", {None}),
            # With TLS 1.3 a client learns only afterwards that it should have shown a certificate.
            "wants": ({"leaf": good, "tune": asks_for_certificate(ssl.CERT_REQUIRED)}, "refused",
                      {"upstream_closed", "upstream_tls"}),
            "wants12": ({"leaf": good, "tune": asks_for_certificate(ssl.CERT_REQUIRED, ssl.TLSVersion.TLSv1_2)},
                        "refused", {"upstream_tls"}),
            "wrongname": bad_leaf(ca.leaf("elsewhere.test")),
            "parent": bad_leaf(ca.leaf("test", "x.parent.test", "*.parent.test")),
            "partial": bad_leaf(ca.leaf("part*.test", "*.test.evil.test")),
            "subject": bad_leaf(ca.leaf("subject.test", alt_names=False)),
            "expired": bad_leaf(ca.leaf("expired.test", expired=True)),
            "selfsigned": bad_leaf(ca.self_signed("selfsigned.test")),
            "unknown": bad_leaf(stranger.leaf("unknown.test")),
            "usage": bad_leaf(ca.leaf("usage.test", usage="clientAuth")),
            "leafsigned": bad_leaf(ca.leaf("leafsigned.test", signer=ca.leaf("signer.test"))),
            "tls10": bad("tls10", tune=only(ssl.TLSVersion.TLSv1)),
            "tls11": bad("tls11", tune=only(ssl.TLSVersion.TLSv1_1)),
            "plain": shakes("plain", faulty.say_plainly(ADVERTISEMENT)),
            "plainfirst": shakes("plainfirst", faulty.say_plainly(ADVERTISEMENT, linger=False)),
            "ssh": shakes("ssh", faulty.say_plainly(b"SSH-2.0-evil\r\n", linger=False)),
            "nothing": shakes("nothing", faulty.say_plainly(b"", linger=False)),
            "leaves": shakes("leaves", faulty.say_plainly(b"")),
            "resets": shakes("resets", faulty.reset_at_once(), "upstream_tls", "upstream_unreachable"),
            "alerts": shakes("alerts", faulty.say_plainly(b"\x15\x03\x03\x00\x02\x02\x28")),
            "warns": shakes("warns", faulty.say_plainly(b"\x15\x03\x03\x00\x02\x01\x70" * 50)),
            "hugerecord": shakes("hugerecord", faulty.say_plainly(b"\x16\x03\x03\xff\xff" + b"\x02" * 65535)),
            "hugehello": shakes("hugehello", faulty.say_plainly(b"\x16\x03\x03\x40\x00\x02\xff\xff\xff" + b"x" * 16380)),
            "emptyrecords": shakes("emptyrecords", faulty.say_plainly(b"\x16\x03\x03\x00\x00" * 5000)),
            "hangs": shakes("hangs", faulty.hang_in_handshake(), "upstream_timeout"),
        }

    def test_each_handshake_by_gate_and_vault(self):
        ca = PrivateCa(self.stage.root / "hostile-ca")
        self.stage.write(self.stage.ca, ca.pem.read_text(), self.stage.runner_uid)
        cases = self.cases(ca)
        upstreams, config, rules = {}, TIMEOUTS, []
        for name, (arguments, _, _) in cases.items():
            upstreams[name] = FaultyUpstream(arguments.pop("leaf"), faulty.say(ADVERTISEMENT), **arguments)
            self.addCleanup(upstreams[name].stop)
            config += (f'\n[host."{name}.test"]\nkind = "generic"\nca = "{self.stage.ca}"\n'
                       f'address = "{upstreams[name].address}"\n' + approval(f"{name}.test"))
            rules += [git_rule(f"{name}.test/held/*"), git_rule(f"{name}.test/open/*", credential=None)]
        self.stage.write_config(self.forge.address, config + harness.UNHURRIED)
        self.stage.write_policy(policy(*rules))
        lines = {f"GET https://{name}.test/{owner}/widget/info/refs?service=git-upload-pack": name
                 for owner in ("held", "open") for name in cases}
        slow = [line for line, name in lines.items() if name == "hangs"]
        told, ends, _ = self.ask([line for line in lines if line not in slow], slow)
        for line, name in lines.items():
            _, how, reasons = cases[name]
            with self.subTest(line):
                reason = ends[line][0]["reason"] if how == "refused" else None
                self.assertIn(reason, reasons, str(ends[line]))
                self.check(line, told[line], ends[line], how, reason)
                self.assertEqual(len(upstreams[name].requests), 2 if how == "whole" else 0)
                self.assertEqual(upstreams[name].connections, 2, "one of each owner, and no second try")

    def test_an_answer_before_the_request_is_not_left_for_the_next_one(self):
        # Two at once: the first may be taken for the answer, and the second is seen before the connection is kept.
        ca = PrivateCa(self.stage.root / "hostile-ca")
        upstream = FaultyUpstream(ca.leaf("forge.test"), faulty.say(ADVERTISEMENT),
                                  handshake=faulty.answer_first(ADVERTISEMENT * 2))
        self.addCleanup(upstream.stop)
        self.stage.write(self.stage.ca, ca.pem.read_text(), self.stage.runner_uid)
        self.stage.write_config(upstream.address, TIMEOUTS + harness.UNHURRIED)
        self.stage.write_policy(policy(git_rule("forge.test/held/*"), git_rule("forge.test/open/*", credential=None)))
        lines = [f"GET https://forge.test/{owner}/{name}/info/refs?service=git-upload-pack"
                 for owner in ("held", "open") for name in ("one", "two", "three")]
        self.ask(lines)
        # Its threads note what they were asked behind their answers.
        deadline = time.monotonic() + harness.RUN_TIMEOUT_SECONDS
        while sum(map(len, upstream.served)) < len(lines) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual([len(served) for served in upstream.served], [1] * len(lines))


if __name__ == "__main__":
    harness.main()
