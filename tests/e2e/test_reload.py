#!/usr/bin/python3
"""SIGHUP to `sallyport serve`, and to a daemon with its sessions: both files are read again, what they say now holds at
once, and what they no longer allow ends."""

import json
import os
import signal
import subprocess

import canary
import harness
import processes
import web
from harness import SALLYPORT, in_both_flavours
from test_egress import EgressCase
from test_sessions import Daemon

LOOPBACK = "127.0.0.1:0"
GIT_URL = "https://forge.test/acme/widget"
RELOADS = 50
LIMIT_KIB = 16 * 1024

GIT = '''
[[git]]
repo = "forge.test/acme/widget"
access = "fetch"
credential = "forge"
'''


def allow(host, more=""):
    return f'\n[[allow]]\nhost = "{host}"\n{more}'


def tcp(host):
    return f'\n[[tcp]]\nhost = "{host}"\nport = 7777\n'


def rules_of(letter):
    """Of one set of hosts: inspected, spliced, and raw."""
    return (allow(f"web-{letter}.test", "websocket = true\n") + allow(f"pinned-{letter}.test", 'tls = "splice"\n')
            + tcp(f"echo-{letter}.test"))


# One connection through the proxy. Says "open" when it is, and then obeys: "use" it once more, "wait" for its end.
CLIENT = r'''
import base64, os, socket, ssl, sys

kind, host, proxy, authorities, size = sys.argv[1], sys.argv[2], sys.argv[3].rsplit(":", 1), sys.argv[4], int(sys.argv[5])
piece = bytes(range(251)) * 4177
port = 7777 if kind == "raw" else 443
stream = socket.create_connection((proxy[0], int(proxy[1])), 170)
stream.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
head = b""
while not head.endswith(b"\r\n\r\n"):
    got = stream.recv(1)
    assert got, head
    head += got
assert head.startswith(b"HTTP/1.1 200 "), head
if kind != "raw":
    stream = ssl.create_default_context(cafile=authorities).wrap_socket(stream, server_hostname=host)
reader = stream.makefile("rb")


def ask(target, fields=""):
    stream.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode())
    status, length = int(reader.readline().split()[1]), 0
    while line := reader.readline().strip().lower():
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, length


read = 0
if kind == "websocket":
    assert ask("/socket", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n")[0] == 101
elif kind == "download":
    assert ask(f"/bytes/{size}") == (200, size)


def use():
    global read
    if kind == "raw":
        stream.sendall(b"some bytes")
        assert reader.read(10) == b"some bytes"
    elif kind == "websocket":
        said, mask = os.urandom(10), os.urandom(4)
        stream.sendall(bytes([0x82, 0x80 | len(said)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(said)))
        assert reader.read(12) == bytes([0x82, 10]) + said
    elif kind == "download":
        want = min(1 << 20, size - read)
        at = read % len(piece)
        assert reader.read(want) == (piece[at:] + piece * 2)[:want]
        read += want
    else:
        status, length = ask("/hello")
        assert (status, reader.read(length)) == (200, b"hello\n")


use()
print("open", flush=True)
for line in sys.stdin:
    if line == "use\n":
        use()
        print("used", flush=True)
    elif line == "finish\n":
        while kind == "download" and read < size:
            use()
        print("finished", flush=True)
        break
    else:
        try:
            while got := reader.read(1 << 16):
                read += len(got)
        except OSError:
            pass
        assert kind != "download" or read < size
        print("ended", flush=True)
        break
'''

# Asks for both paths, again and again, on connections that are kept as long as they last, until it is told to stop.
BUSY = r'''
import http.client, select, ssl, sys

host, port = sys.argv[1].rsplit(":", 1)
counts, connection = {}, None
while not select.select([sys.stdin], [], [], 0)[0]:
    for target in ("/hello", "/other"):
        try:
            if connection is None:
                connection = http.client.HTTPSConnection(host, int(port), timeout=170,
                                                         context=ssl.create_default_context(cafile=sys.argv[2]))
                connection.set_tunnel("web-a.test", 443)
            connection.request("GET", target)
            answer = connection.getresponse()
            answer.read()
            outcome = str(answer.status)
        except (OSError, http.client.HTTPException):
            connection, outcome = None, "cut"
        counts[outcome] = counts.get(outcome, 0) + 1
    print("round", flush=True)
print(counts)
'''
KINDS = {"raw": "echo", "spliced": "pinned", "websocket": "web", "download": "web", "kept": "web"}


class Connections:
    """Those that are open while policies change."""

    def make_upstreams(self, ca):
        made = {}
        for letter in "abc":
            made |= {f"web-{letter}.test": web.Web(ca.leaf(f"web-{letter}.test")),
                     f"pinned-{letter}.test": web.Web(ca.leaf(f"pinned-{letter}.test")),
                     f"echo-{letter}.test": web.Raw()}
        return made

    def tell(self, client, word):
        client.process.stdin.write(word.encode() + b"\n")
        client.process.stdin.flush()

    def hear(self, client, word, what):
        heard = client.process.stdout.readline()
        if heard != word.encode() + b"\n":
            self.fail(f"{what}: {heard}\n{client.finish()}")

    def what_was_answered_has_its_end(self):
        audit = self.stage.audit()
        ended = {line["request"] for line in audit if line["kind"] == "end"}
        return all(line["request"] in ended for line in audit if line["kind"] == "begin" and line.get("path") == "/hello")

    def revoked(self):
        """The hosts of all that ended so, as far as it is written down: a client hears of its end before the log."""
        audit = self.stage.audit()
        begun = {line["request"]: line for line in audit if line["kind"] == "begin"}
        return sorted(begun[line["request"]]["host"] for line in audit
                      if line["kind"] == "end" and line["reason"] == "revoked")


class Reload(Connections, EgressCase):
    policy = harness.policy(rules_of("a"), rules_of("b"), GIT)

    def setUp(self):
        super().setUp()
        self.ca_file = self.stage.home / "serve-ca.pem"

    def serve(self):
        running = self.stage.spawn([SALLYPORT, "serve", "--json", "--ca-file", self.ca_file, "--proxy", LOOPBACK])
        line = running.process.stdout.readline()
        if not line:
            self.fail(str(running.finish()))
        return running, json.loads(line)["proxy"]

    def configure(self, text):
        self.stage.write(self.stage.config, text, self.stage.runner_uid, 0o600)

    def reload(self, running, policy=None, done=True):
        if policy is not None:
            self.stage.write_policy(policy)
        running.process.send_signal(signal.SIGHUP)
        line = running.process.stdout.readline()
        if not line:
            self.fail(str(running.finish()))
        if json.loads(line) != {"reloaded": done}:
            self.fail(f"{line}\n{running.kill()}")

    def end(self, running):
        running.process.send_signal(signal.SIGINT)
        return self.assert_ok(running.finish())

    def curl(self, proxy, *argv):
        return self.stage.spawn(["curl", "-sS", "--max-time", "60", "--cacert", self.ca_file, "--proxy", f"http://{proxy}",
                                 *argv]).finish()

    def git(self, proxy, *argv):
        return self.stage.spawn(["git", "-c", f"http.proxy=http://{proxy}", "-c", f"http.sslCAInfo={self.ca_file}",
                                 *argv]).finish()

    def client(self, kind, letter, proxy, size=1 << 30):
        host = f"{KINDS[kind]}-{letter}.test"
        authorities = self.stage.ca if kind == "spliced" else self.ca_file
        client = self.stage.spawn(["python3", "-c", CLIENT, kind, host, proxy, authorities, str(size)],
                                  stdin=subprocess.PIPE)
        self.hear(client, "open", f"{kind} to {host}")
        client.wait_for(self.what_was_answered_has_its_end, "the last line of its request")
        return client

    def lines_behind(self, outcome, nth=0):
        """The audit lines behind the nth reload."""
        reloads = [i for i, line in enumerate(outcome.audit) if line["kind"] == "reload"]
        return outcome.audit[reloads[nth] + 1:]

    # --- what the new policy does not allow ends, and nothing else does ---

    def test_what_is_open_ends_when_its_rule_goes(self):
        running, proxy = self.serve()
        revoked = {kind: self.client(kind, "a", proxy) for kind in KINDS}
        kept = {kind: self.client(kind, "b", proxy, 40 << 20) for kind in KINDS}
        for client in revoked.values():
            self.tell(client, "wait")
        self.reload(running, harness.policy(rules_of("b"), rules_of("c"), GIT))
        for kind, client in revoked.items():
            self.hear(client, "ended", f"revoked {kind}")
            self.assert_ok(client.finish())
        running.wait_for(lambda: len(self.revoked()) == 4, "their last lines")  # nothing was under way on the kept one
        for kind, client in kept.items():
            self.tell(client, "use")
            self.hear(client, "used", f"kept {kind}")
            self.tell(client, "finish")
            self.hear(client, "finished", f"kept {kind}")
            self.assert_ok(client.finish())
        # What is new holds as well.
        self.assert_ok(self.curl(proxy, "https://web-c.test/hello"))
        before = self.stage.traffic()
        self.assert_failed(self.curl(proxy, "https://web-a.test/hello"))
        self.assertEqual(self.stage.traffic(), before)
        outcome = self.end(running)
        begun = {line["request"]: line for line in outcome.events("begin")}
        behind = self.lines_behind(outcome)
        ended = {(begun[line["request"]]["host"], line["reason"]) for line in behind if line["kind"] == "end"}
        hosts_of_a = {"echo-a.test", "pinned-a.test", "web-a.test"}
        self.assertEqual({pair for pair in ended if pair[0] in hosts_of_a}, {(host, "revoked") for host in hosts_of_a},
                         str(outcome))
        self.assertNotIn("revoked", {reason for host, reason in ended if host not in hosts_of_a}, str(outcome))
        self.assertEqual(len(self.revoked()), 4, str(outcome))
        refused = outcome.events("refused")
        self.account_for(refused)
        self.assertEqual([(line["host"], line["reason"]) for line in refused], [("web-a.test", "host_not_allowed")],
                         str(outcome))

    def test_a_host_that_is_reached_another_way_is_no_longer_the_same(self):
        running, proxy = self.serve()
        spliced, kept = self.client("spliced", "a", proxy), self.client("kept", "a", proxy)
        for client in (spliced, kept):
            self.tell(client, "wait")
        self.reload(running, harness.policy(allow("web-a.test", 'tls = "splice"\n'), allow("pinned-a.test")))
        for client in (spliced, kept):
            self.hear(client, "ended", "whose TLS is another's now")
        running.wait_for(lambda: "pinned-a.test" in self.revoked(), "the last line of what is spliced")
        outcome = self.end(running)
        self.assertEqual([line["reason"] for line in self.lines_behind(outcome) if line["kind"] == "end"], ["revoked"],
                         str(outcome))

    def test_another_upstream_of_the_operators_ends_it_too(self):
        running, proxy = self.serve()
        raw = self.client("raw", "a", proxy)
        self.tell(raw, "wait")
        text = self.stage.config.read_text()
        elsewhere = text.replace(self.upstreams["echo-a.test"].address, self.upstreams["echo-b.test"].address)
        self.configure(elsewhere)
        self.reload(running)
        self.hear(raw, "ended", "to an address of the past")
        self.client("raw", "a", proxy).kill()
        self.end(running)

    def test_other_limits_cut_everything_and_hold(self):
        running, proxy = self.serve()
        raw = self.client("raw", "b", proxy)
        self.tell(raw, "wait")
        self.configure(self.stage.config.read_text() + "\n[limits]\nrequests_per_host = 7\n")
        processes_before = running.tree()
        self.reload(running)
        self.hear(raw, "ended", "under other limits")
        self.assertEqual(running.tree(), processes_before)
        self.assert_ok(self.curl(proxy, "https://web-b.test/hello"))
        outcome = self.end(running)
        self.assertEqual(outcome.events("alarm"), [], str(outcome))

    # --- what says the same, or cannot be used, changes nothing ---

    def test_the_same_files_disturb_nobody(self):
        running, proxy = self.serve()
        raw, processes_before = self.client("raw", "a", proxy), running.tree()
        for _ in range(20):
            self.reload(running)
        self.tell(raw, "use")
        self.hear(raw, "used", "under the same policy")
        raw.kill()
        self.assertEqual(running.tree(), processes_before)
        self.assertEqual(len(self.end(running).events("reload")), 20)

    def test_a_broken_file_leaves_everything_as_it_is(self):
        running, proxy = self.serve()
        raw = self.client("raw", "a", proxy)
        self.reload(running, "version = 1\n\n[[allow]]\nhost = 3\n", done=False)
        self.tell(raw, "use")
        self.hear(raw, "used", "as before")
        self.assert_ok(self.curl(proxy, "https://web-a.test/hello"))
        self.stage.write_policy(self.policy)
        self.stage.token_file.chmod(0o644)  # a credential that the start would not take either
        self.stage.write_policy(harness.policy(rules_of("a"), GIT.replace("widget", "*")))
        self.reload(running, done=False)
        raw.kill()
        outcome = self.end(running)
        self.assertEqual(outcome.events("reload"), [], str(outcome))
        alarms = outcome.events("alarm")
        self.assertEqual([line["reason"] for line in alarms], ["policy_unreadable"] * 2, str(outcome))
        self.assertIn("sallyport.toml:4:", alarms[0]["detail"])
        self.assert_shows(outcome, "sallyport: not reloaded", "sallyport.toml:4:", "chmod")
        self.assertEqual(outcome.stderr.count("not reloaded"), 2, str(outcome))

    # --- credentials ---

    def test_a_credential_that_is_taken_away_is_not_used_again(self):
        running, proxy = self.serve()
        self.assert_ok(self.git(proxy, "ls-remote", GIT_URL))
        [vault] = running.pids_of("sallyport-vault")
        if os.getuid() == 0:  # who may look into it
            self.assertNotEqual(canary.search_process(vault, self.stage.token), [])
        self.reload(running, harness.policy(rules_of("a")))
        before = self.stage.traffic()
        self.assert_failed(self.git(proxy, "ls-remote", GIT_URL))
        self.assertEqual(self.stage.traffic(), before)
        self.assertEqual(running.pids_of("sallyport-vault"), [vault])
        if os.getuid() == 0:
            self.assertEqual(canary.search_process(vault, self.stage.token), [])
        self.reload(running, self.policy)
        self.assert_ok(self.git(proxy, "ls-remote", GIT_URL))
        outcome = self.end(running)
        refused = outcome.events("refused")
        self.account_for(refused)
        self.assertEqual([line["reason"] for line in refused], ["host_not_allowed"], str(outcome))
        self.assertEqual(outcome.events("alarm"), [], str(outcome))
        between = [line["kind"] for line in self.lines_behind(outcome)]
        self.assertEqual(between[:between.index("reload")], ["refused"], str(outcome))

    # --- one whole policy for each request ---

    def test_many_reloads_under_load(self):
        self.configure(self.stage.config.read_text() + harness.UNHURRIED)
        texts = [harness.policy(allow("web-a.test", 'paths = ["/hello"]\n')),
                 harness.policy(allow("web-b.test"), allow("web-a.test", 'paths = ["/other"]\n'))]
        self.stage.write_policy(texts[0])
        running, proxy = self.serve()
        busy = [self.stage.spawn(["python3", "-c", BUSY, proxy, self.ca_file], stdin=subprocess.PIPE) for _ in range(2)]
        early = None
        for i in range(1, RELOADS + 1):
            for client in busy:
                self.hear(client, "round", "a client that asks all the time")
            self.reload(running, texts[i % 2])
            if i == RELOADS // 2:
                early = processes.peak_kib(running.pids_of("sallyport-gate")[0])
        late = processes.peak_kib(running.pids_of("sallyport-gate")[0])
        for client in busy:
            self.tell(client, "stop")
            self.assert_ok(client.finish())
        outcome = self.end(running)
        if not harness.SANITIZED:
            self.assertLess(late - early, LIMIT_KIB)
        present, judged = 0, 0
        for line in outcome.audit:
            if line["kind"] == "reload":
                present += 1
            if line["kind"] not in ("begin", "refused"):
                continue
            judged += 1
            allowed = "/hello" if present % 2 == 0 else "/other"
            if line["path"]:
                self.assertEqual(line["kind"], "begin" if line["path"] == allowed else "refused", line)
            if line["kind"] == "begin":
                self.assertTrue(line["rule"].endswith(":3" if present % 2 == 0 else ":6"), line)
        self.assertEqual(present, RELOADS)
        self.assertGreater(judged, RELOADS)
        refused = outcome.events("refused")
        self.account_for(refused)
        self.assertLessEqual({line["reason"] for line in refused}, {"path_not_allowed", "client_closed"}, str(outcome))


in_both_flavours(Reload)
del Reload


class ReloadOfSessions(Connections, Daemon, EgressCase):
    """Sessions of a daemon: by `sallyport gateway reload`, and by SIGHUP."""

    policy = harness.policy(rules_of("a"), harness.git_rule("forge.test/acme/*"))
    authorities = "/etc/ssl/certs/ca-certificates.crt"

    def reload(self, *sessions, policy=None):
        if policy is not None:
            self.stage.write_policy(policy)
        return self.sallyport("gateway reload", *sessions)

    def client(self, kind, letter, size=1 << 30):
        host = f"{KINDS[kind]}-{letter}.test"
        authorities = self.stage.work / "upstream-ca.pem" if kind == "spliced" else self.authorities
        client = self.stage.spawn(self.argv("exec", "agent", "--", "python3", "-c", CLIENT, kind, host,
                                            "198.18.0.1:3128", authorities, str(size)), stdin=subprocess.PIPE)
        self.hear(client, "open", f"{kind} to {host}")
        client.wait_for(self.what_was_answered_has_its_end, "the last line of its request")
        return client

    def curl(self, url):
        return self.exec("agent", ["curl", "-sS", "--max-time", "60", url])

    def assert_refused_inside(self, reason, command):
        before = self.stage.traffic()
        outcome = self.assert_failed(self.exec("agent", command))
        self.assertEqual({line["reason"] for line in outcome.events("refused")}, {reason}, str(outcome))
        self.assertEqual(self.stage.traffic(), before)
        self.account_for(outcome.events("refused"))

    def test_what_is_open_ends_when_its_rule_goes(self):
        self.new("agent")
        clients = {kind: self.client(kind, "a") for kind in KINDS}
        self.forge.add_widget("acme/slow", blob_bytes=2 << 20)
        clone = self.stage.spawn(self.argv("exec", "agent", "--", "git", "clone", "-q", "https://forge.test/acme/slow"))
        clone.wait_for(self.forge.holds, "the clone's middle")
        for client in clients.values():
            self.tell(client, "wait")
        outcome = self.assert_ok(self.reload("agent", policy=harness.policy(rules_of("b"))))
        self.assert_shows(outcome, "agent: reloaded\n", "  - [[allow]] web-a.test (", "  + [[allow]] web-b.test (",
                          "  - [[git]] forge.test/acme/* (fetch, credential \"forge\")\n", "  + [[tcp]] echo-b.test:7777\n")
        for kind, client in clients.items():
            self.hear(client, "ended", f"revoked {kind}")
            self.assert_ok(client.finish())
        self.assert_failed(clone.finish())
        self.forge.open_gate()
        # The clone's too; nothing was under way on the kept-alive connection.
        self.daemon.wait_for(lambda: len(self.revoked()) == 5, "their last lines")
        self.assertEqual(self.revoked().count("forge.test"), 1, self.revoked())
        self.assertEqual(len([line for line in self.stage.audit() if line["kind"] == "reload"]), 1)
        # What is new holds as well, and nothing else.
        self.assert_ok(self.curl("https://web-b.test/hello"))
        self.assert_refused_inside("host_not_allowed", "curl -sS --proxy http://198.18.0.1:3128 https://web-a.test/hello")
        self.assertEqual(self.status("agent")["state"], "running")

    def test_a_broken_file_leaves_everything_as_it_is(self):
        self.new("agent")
        raw = self.client("raw", "a")
        for policy, words in (("version = 1\n\n[[allow]]\nhost = 3\n", "sallyport.toml:4:8: "),
                              (harness.policy(harness.git_rule("other.test/a/b")), "sallyport policy trust")):
            outcome = self.reload(policy=policy)
            self.assertEqual(outcome.code, harness.EXIT_SALLYPORT_FAILED, str(outcome))
            self.assert_shows(outcome, "agent: not reloaded: what was read before stays in force", words)
            self.tell(raw, "use")
            self.hear(raw, "used", "as before")
            self.assert_ok(self.curl("https://web-a.test/hello"))
        alarms = [line for line in self.stage.audit() if line["kind"] == "alarm"]
        self.assertEqual([line["reason"] for line in alarms], ["policy_unreadable"] * 2)
        self.assert_ok(self.reload("--quiet", policy=self.policy))
        self.tell(raw, "use")
        self.hear(raw, "used", "under the same policy")
        raw.kill()

    def test_a_signal_is_for_all_sessions(self):
        self.new("agent")
        other = self.stage.folder("other", self.stage.sandbox_uid, 0o755)
        self.stage.write(other / "sallyport.toml", harness.policy(rules_of("a")), self.stage.sandbox_uid)
        self.new("other", "--workspace", other)
        raw = self.client("raw", "a")
        self.tell(raw, "wait")
        self.stage.write_policy(harness.policy(rules_of("c")))
        self.daemon.process.send_signal(signal.SIGHUP)
        self.hear(raw, "ended", "revoked by a signal")
        self.assert_ok(raw.finish())
        self.assert_ok(self.curl("https://web-c.test/hello"))
        self.assert_ok(self.exec("other", "curl -sS --max-time 60 https://web-a.test/hello"))
        self.daemon.process.send_signal(signal.SIGTERM)
        outcome = self.assert_ok(self.daemon.finish())
        self.assertIn(f"session 'other' of uid {self.stage.runner_uid}: reloaded: nothing is new", outcome.stderr)
        self.assertIn("+ [[tcp]] echo-c.test:7777", outcome.stderr)

    def test_credentials_come_and_go(self):
        self.new("agent")
        ls = "git ls-remote https://forge.test/acme/widget >/dev/null"
        self.assert_ok(self.exec("agent", ls))
        # Another token needs no reload.
        self.stage.write(self.stage.token_file, "wrong-" + self.stage.token, self.stage.runner_uid, 0o600)
        self.daemon.wait_for(lambda: self.exec("agent", ls).code != 0, "the other token's first use")
        self.stage.write(self.stage.token_file, self.stage.token, self.stage.runner_uid, 0o600)
        self.daemon.wait_for(lambda: self.exec("agent", ls).code == 0, "the good one's first use")
        # A rule without it, and an operator's file without it.
        self.assert_ok(self.reload(policy=harness.policy(harness.git_rule("forge.test/acme/*", credential=None))))
        self.assert_failed(self.exec("agent", ls))  # the forge serves nobody without
        self.assert_ok(self.reload(policy=self.policy))
        self.assert_ok(self.exec("agent", ls))
        text = self.stage.config.read_text()
        self.stage.write(self.stage.config, text[:text.index("\n[[approve]]")] + text[text.index("\n[host."):],
                         self.stage.runner_uid, 0o600)
        outcome = self.assert_failed(self.reload())
        self.assert_shows(outcome, "sallyport.toml:", "forge")

    def test_a_policy_that_the_sandbox_makes_is_not_read(self):
        self.stage.policy.unlink()
        self.new("agent")
        self.assert_ok(self.exec("agent", f"printf 'version = 1\\n[[allow]]\\nhost = \"web-a.test\"\\n' >{self.stage.policy}"))
        outcome = self.assert_failed(self.reload())
        self.assert_shows(outcome, "was made while the sandbox runs")
        self.assert_refused_inside("policy_empty", "curl -sS --proxy http://198.18.0.1:3128 https://web-a.test/hello")

    def test_wrong_use_is_told(self):
        self.new("agent")
        self.assert_shows(self.assert_failed(self.reload("nobody")), "there is no session 'nobody'")
        self.assert_ok(self.sallyport("stop", "agent"))
        self.assert_shows(self.assert_failed(self.reload("agent")), "does not run")
        self.assertEqual(self.assert_ok(self.reload()).stdout, "")


in_both_flavours(ReloadOfSessions)
del ReloadOfSessions

if __name__ == "__main__":
    harness.main()
