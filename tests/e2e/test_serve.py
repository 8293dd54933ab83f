#!/usr/bin/python3
"""`sallyport serve`: the same judgements at doors on the host's loopback addresses, for one user alone."""

import os
import pty
import select
import signal
import socket
import struct
import subprocess
import unittest

import harness
from harness import E2E, git_rule, in_both_flavours, policy

SOMEBODY = 65534
LOOPBACK = "127.0.0.1:0"
URL = "https://forge.test/acme/widget"


def dns_query(name):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">6H", 0x1234, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)


def endpoint(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


class Serve(E2E):
    def setUp(self):
        super().setUp()
        self.ca_file = self.stage.home / "serve-ca.pem"

    def serve(self, *options):
        return self.stage.serve("--ca-file", self.ca_file, *options)

    def end(self, running, number=signal.SIGINT):
        running.process.send_signal(number)
        outcome = running.finish()
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertEqual(len(outcome.stderr.splitlines()), 1, str(outcome))
        self.assertTrue(outcome.stderr.startswith("sallyport: ready: "), str(outcome))
        self.assertFalse(self.ca_file.exists())
        return outcome

    def gate_of(self, running):
        # A program with a sanitizer forks once when it starts: the child is not the gate.
        return running.pids_of("sallyport-gate")[0]

    def curl(self, *argv):
        return self.stage.spawn(["curl", "-sS", "--max-time", "60", "--cacert", self.ca_file, *argv]).finish()

    # --- the ways in ---

    def test_git_pushes_through_the_proxy_with_a_credential_that_it_does_not_have(self):
        running, ready = self.serve("--proxy", LOOPBACK)
        git = ["git", "-c", f"http.proxy=http://{ready['proxy']}", "-c", f"http.sslCAInfo={self.ca_file}",
               "-c", "user.name=T", "-c", "user.email=t@forge.test"]
        self.assert_ok(self.stage.spawn([*git, "clone", "-q", URL, "w"]).finish())
        work = self.stage.work / "w"
        self.assert_ok(self.stage.spawn([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=work).finish())
        self.assert_ok(self.stage.spawn([*git, "push", "-q", "origin", "HEAD:served"], cwd=work).finish())
        outcome = self.end(running)
        self.assertIn("refs/heads/served", self.forge.refs("acme/widget"))
        self.assertIn("refs/heads/served", self.refs_pushed(outcome))
        self.assertEqual({line["entry"] for line in outcome.events("begin")}, {"proxy"})
        self.assertEqual(outcome.audit[0]["kind"], "session_start")
        self.assertEqual(outcome.audit[-1]["kind"], "session_end")

    def test_every_door_leads_to_the_same_judgement(self):
        running, ready = self.serve("--proxy", LOOPBACK, "--tls", LOOPBACK, "--http", LOOPBACK,
                                    "--door", f"{LOOPBACK}=https://forge.test")
        fixed = ready["doors"][0]
        self.assertEqual(fixed["target"], "https://forge.test")
        url = "https://forge.test/login"
        ways = [("--proxy", f"http://{ready['proxy']}"), ("--connect-to", f"::{ready['tls']}"),
                ("--connect-to", f"::{fixed['address']}")]
        for way in ways:
            outcome = self.assert_ok(self.curl(*way, url))
            self.assertIn("Only git is allowed at this host.", outcome.stdout)
        by_proxy, by_tls, at_fixed = (self.curl(*way, "https://evil.test/") for way in ways)
        self.assert_failed(by_proxy)
        self.assertIn("The policy does not allow this host.", self.assert_ok(by_tls).stdout)
        self.assert_failed(at_fixed)
        self.assert_ok(self.curl("--connect-to", f"::{ready['http']}", "http://forge.test/"))
        before = self.stage.traffic()
        outcome = self.end(running)
        self.assertEqual(self.stage.traffic(), before)
        refused = outcome.events("refused")
        self.account_for(refused)
        self.assertEqual([line["reason"] for line in refused[:3]], ["not_git"] * 3, str(outcome))
        self.assertEqual([line["entry"] for line in refused], ["proxy", "tls", "tls"] * 2 + ["http"], str(outcome))
        self.assertEqual({line["reason"] for line in refused[3:5]}, {"host_not_allowed"}, str(outcome))
        self.assertEqual(outcome.events("begin"), [])

    def test_names_are_answered_by_udp_and_tcp(self):
        running, ready = self.serve("--dns", LOOPBACK)
        query = dns_query("forge.test")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.settimeout(60)
            udp.sendto(query, endpoint(ready["dns"]))
            by_udp = udp.recv(4096)
        if self.stage.runner_uid == os.getuid():  # this test's own connection is served
            with socket.create_connection(endpoint(ready["dns"]), timeout=60) as tcp:
                tcp.sendall(struct.pack(">H", len(query)) + query)
                by_tcp = tcp.makefile("rb").read(2 + len(by_udp))
            self.assertEqual(by_tcp[2:], by_udp)
        self.assertEqual(by_udp[3] & 15, 0, by_udp)
        self.assertEqual(by_udp[-4:-2], bytes([198, 18]), by_udp)
        self.end(running)

    # --- for whom ---

    @unittest.skipIf(os.getuid() != 0, "only root can be somebody else")
    def test_another_user_is_refused_at_every_door(self):
        running, ready = self.serve("--proxy", LOOPBACK, "--tls", "[::1]:0", "--http", LOOPBACK, "--dns", LOOPBACK,
                                    "--door", "127.0.0.9:0=https://forge.test")
        before = self.stage.traffic()
        addresses = [*(ready[name] for name in ("proxy", "tls", "http", "dns")), ready["doors"][0]["address"]]
        for address in addresses:
            curl = subprocess.run(["curl", "-sS", "--max-time", "60", f"http://{address}/"], user=SOMEBODY, group=SOMEBODY,
                                  extra_groups=[], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            # Reset, be it before curl has noticed that it was connected, or before it has sent anything.
            self.assertIn(curl.returncode, (7, 52, 55, 56), curl)
        outcome = self.end(running)
        refused = outcome.events("refused")
        self.account_for(refused)
        self.assertEqual([line["reason"] for line in refused], ["other_user"] * len(addresses), str(outcome))
        self.assertEqual([line["destination"] for line in refused], addresses)
        self.assertEqual({line["detail"] for line in refused}, {f"uid {SOMEBODY}"})
        self.assertEqual(outcome.events("begin"), [])
        self.assertEqual(self.stage.traffic(), before)

    @unittest.skipIf(os.getuid() != 0, "only root can be somebody else")
    def test_a_request_that_another_user_leaves_behind_is_not_taken_for_roots(self):
        running, ready = self.serve("--proxy", LOOPBACK)
        gate = self.gate_of(running)
        os.kill(gate, signal.SIGSTOP)  # so that the client is gone before it can be asked about
        script = ("import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])));"
                  "s.sendall(b'GET http://forge.test/ HTTP/1.1\\r\\nHost: forge.test\\r\\n\\r\\n')")
        subprocess.run(["python3", "-c", script, *map(str, endpoint(ready["proxy"]))], user=SOMEBODY, group=SOMEBODY,
                       extra_groups=[], check=True)
        os.kill(gate, signal.SIGCONT)
        self.assert_ok(self.curl("--proxy", f"http://{ready['proxy']}", "https://forge.test/login"))
        outcome = self.end(running)
        reasons = [line["reason"] for line in outcome.events("refused")]
        self.account_for(outcome.events("refused"))
        self.assertEqual(reasons, ["client_closed", "not_git"], str(outcome))

    # --- long lists ---

    def test_a_hundred_thousand_names_are_served(self):
        names = ",\n".join(f'"n{i}.test"' for i in range(100_000))
        self.stage.write_policy(f'version = 1\n\n[[tcp]]\nport = 5432\nhost = [\n{names}\n]\n')
        running, ready = self.serve("--proxy", LOOPBACK)
        before = self.stage.traffic()
        self.assert_failed(self.curl("--proxytunnel", "--proxy", f"http://{ready['proxy']}", "http://m7.test:5432/"))
        outcome = self.end(running)
        self.assert_all_refused(outcome, "host_not_allowed", 1, before)
        self.assertEqual(outcome.events("alarm"), [])

    # --- starts and ends ---

    def test_only_loopback_addresses_are_served(self):
        for option, sentence in ((("--proxy", "0.0.0.0:0"), "only loopback addresses"),
                                 (("--tls", "[::]:0"), "only loopback addresses"),
                                 (("--dns", "192.0.2.1:53"), "only loopback addresses"),
                                 (("--http", "localhost:80"), "not an ADDRESS:PORT"),
                                 (("--door", "10.0.0.1:0=https://forge.test"), "only loopback addresses"),
                                 (("--door", LOOPBACK), "not ADDRESS:PORT=https://HOST")):
            outcome = self.stage.cli("serve", *option)
            self.assertEqual(outcome.code, harness.EXIT_SALLYPORT_FAILED, str(outcome))
            self.assert_shows(outcome, sentence)
        self.assertEqual(self.stage.cli("serve").code, harness.EXIT_USAGE)

    def test_any_end_leaves_nothing_behind(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            running, ready = self.serve("--proxy", LOOPBACK)
            self.end(running, number)
            self.assert_closed(ready["proxy"])

    def test_so_does_the_closing_of_its_terminal(self):
        controller, terminal = pty.openpty()
        running = self.stage.spawn(["setsid", "--ctty", harness.SALLYPORT, "serve", "--ca-file", self.ca_file, "--proxy", LOOPBACK],
                                   stdin=terminal, stdout=terminal, stderr=terminal)
        os.close(terminal)
        shown = b""
        while not shown.endswith(b"\n"):
            shown += os.read(controller, 4096)
        self.assertIn(b"sallyport: ready: proxy ", shown)
        os.close(controller)
        running.process.wait(harness.RUN_TIMEOUT_SECONDS)
        self.assertEqual(running.process.returncode, 0)
        self.assertFalse(self.ca_file.exists())
        self.assertEqual([line["kind"] for line in self.stage.audit()], ["session_start", "session_end"])

    def test_neither_does_the_death_of_the_command_line(self):
        running, ready = self.serve("--proxy", LOOPBACK)
        warden = running.pids_of("sallyportd")[0]
        watch = os.pidfd_open(warden)
        os.kill(running.pid, signal.SIGKILL)
        running.finish()
        self.assert_ends(watch)
        self.assert_closed(ready["proxy"])
        self.assertFalse(self.ca_file.exists())
        self.assertEqual(self.stage.audit()[-1]["kind"], "session_end")

    def test_a_gate_that_dies_is_started_again_with_its_doors(self):
        running, ready = self.serve("--proxy", LOOPBACK)
        gate = self.gate_of(running)
        os.kill(gate, signal.SIGKILL)
        outcome = self.assert_ok(self.curl("--proxy", f"http://{ready['proxy']}", "https://forge.test/login"))
        self.assertIn("Only git is allowed at this host.", outcome.stdout)
        running.process.send_signal(signal.SIGINT)
        outcome = running.finish()
        self.account_for(outcome.events("refused"))
        self.assertEqual([line["reason"] for line in outcome.events("refused")], ["not_git"], str(outcome))
        self.assert_shows(outcome, "sallyport-gate died")

    def hold_a_request(self, running, ready):
        """A client whose request the forge holds back, and what it asks for."""
        url = "https://forge.test/acme/slow/info/refs?service=git-upload-pack"
        asks = ("--fail", "--proxy", f"http://{ready['proxy']}", url)
        self.forge.hold(1, "answer")
        client = self.stage.spawn(["curl", "-sS", "--max-time", "60", "--cacert", self.ca_file, *asks])
        running.wait_for(self.forge.holds, "a request that is held")
        return client, asks

    def allow_slow(self):
        self.stage.write_policy(policy(git_rule("forge.test/acme/*")))
        self.forge.add_widget("acme/slow")

    def test_while_gate_or_vault_is_dead_nothing_goes_out_and_then_it_does_again(self):
        self.allow_slow()
        for program in ("sallyport-gate", "sallyport-vault"):
            with self.subTest(program):
                running, ready = self.serve("--proxy", LOOPBACK)
                cut, asks = self.hold_a_request(running, ready)
                warden, before = running.pids_of("sallyportd")[0], self.stage.traffic()
                os.kill(warden, signal.SIGSTOP)  # so that nobody starts another yet
                os.kill(running.pids_of(program)[0], signal.SIGKILL)
                with socket.create_connection(endpoint(ready["proxy"]), timeout=60) as waits:
                    waits.sendall(b"CONNECT forge.test:443 HTTP/1.1\r\n\r\n")
                    running.wait_for(lambda program=program: not running.pids_of(program), "its end")
                    self.assertEqual(self.stage.traffic(), before)
                    self.forge.open_gate()
                    self.forge.wait_idle()
                    os.kill(warden, signal.SIGCONT)
                    if self.stage.runner_uid == os.getuid():  # this test's own connection is served
                        self.assertTrue(waits.recv(64).startswith(b"HTTP/1.1 200 "))
                self.assert_failed(cut.finish())
                running.wait_for(lambda asks=asks: self.curl(*asks).code == 0, "egress again")
                running.wait_for(self.every_request_has_its_end, "the last line of a request")
                running.process.send_signal(signal.SIGINT)
                outcome = running.finish()
                self.assertEqual(outcome.code, 0, str(outcome))
                self.assert_shows(outcome, f"{program} died (signal 9) and is started again")
                self.assertEqual([line["reason"] for line in outcome.events("alarm")], ["process_died"], str(outcome))
                self.assertNotEqual(outcome.events("end")[0]["reason"], "none", str(outcome))
                self.assertEqual(outcome.events("end")[-1]["reason"], "none", str(outcome))
                self.account_for(outcome.events("refused"))

    def test_the_death_of_the_warden_ends_it_all_and_the_next_start_works(self):
        self.allow_slow()
        running, ready = self.serve("--proxy", LOOPBACK)
        cut, asks = self.hold_a_request(running, ready)
        watches = [os.pidfd_open(pid) for name in ("sallyport-gate", "sallyport-vault") for pid in running.pids_of(name)]
        os.kill(running.pids_of("sallyportd")[0], signal.SIGKILL)
        outcome = running.finish()
        self.assertEqual(outcome.code, harness.EXIT_SALLYPORT_FAILED, str(outcome))
        self.assert_shows(outcome, "the warden (sallyportd) died")
        self.assert_failed(cut.finish())
        for watch in watches:
            self.assert_ends(watch)
        self.assert_closed(ready["proxy"])
        self.forge.open_gate()
        self.forge.wait_idle()
        # Nobody was left to remove it.
        self.assertTrue(self.ca_file.exists())
        running, ready = self.serve("--proxy", ready["proxy"])
        self.assert_ok(self.curl(*asks))
        self.end(running)
        lines = self.stage.audit()
        for begins, ends, key in (("begin", "end", "request"), ("session_start", "session_end", "session")):
            begun, ended = ([line[key] for line in lines if line["kind"] == kind] for kind in (begins, ends))
            self.assertEqual(sorted(begun), sorted(ended), begins)

    def assert_ends(self, pidfd):
        ready, _, _ = select.select([pidfd], [], [], harness.RUN_TIMEOUT_SECONDS)
        os.close(pidfd)
        self.assertTrue(ready, "the warden still runs")

    def assert_closed(self, address):
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(endpoint(address), timeout=60).close()


in_both_flavours(Serve)
del Serve

if __name__ == "__main__":
    harness.main()
