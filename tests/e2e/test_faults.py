#!/usr/bin/python3
"""When others fail: the upstream, the credential, our own processes, the client. Always a clear end, never a stuck
process, never a half-written ref, never a prompt for a password.
"""

import base64
import os
import shutil
import signal

import harness
import faulty
from faulty import ClosedPort, FaultyUpstream
from harness import AUTHOR, E2E, git_rule, in_both_flavours, policy
from pki import PrivateCa

CLONE = ["git", "clone", "https://forge.test/acme/widget"]


class UpstreamFaults(E2E):
    def serve(self, *faults, leaf=None, config=""):
        """Points the operator's file at a faulty upstream instead of the forge."""
        ca = PrivateCa(self.stage.root / "faulty-ca")
        upstream = FaultyUpstream((leaf or (lambda ca: ca.leaf("forge.test")))(ca), *faults)
        self.addCleanup(upstream.stop)
        self.stage.write(self.stage.ca, ca.pem.read_text(), self.stage.runner_uid)
        self.stage.write_config(upstream.address, config)
        return upstream

    def assert_clone_ends_with(self, reason, *shows):
        outcome = self.assert_failed(self.run_inside(CLONE))
        self.assert_shows(outcome, *shows)
        for prompt in ("could not read Username", "Authentication failed", "Password"):
            self.assertNotIn(prompt, outcome.text)
        self.assertFalse((self.stage.work / "widget").exists())
        ends = outcome.events("end") + outcome.events("refused")
        self.assertEqual([line["reason"] for line in ends], [reason], str(outcome))
        self.assertEqual(len(outcome.events("begin")), 1, str(outcome))
        return outcome

    def test_upstream_refuses_the_credential(self):
        for fault in (faulty.unauthorized(), faulty.status(403)):
            with self.subTest():
                upstream = self.serve(fault)
                self.assert_clone_ends_with("upstream_refused_credential", "remote: ", "refused the gateway's credential")
                self.assertEqual(len(upstream.requests), 1)

    def test_upstream_knows_no_such_repository(self):
        self.serve(faulty.status(404))
        self.assert_clone_ends_with("upstream_not_found", "remote: ", "knows no such repository")

    def test_upstream_has_an_error_of_its_own(self):
        for code in (500, 503):
            with self.subTest(code):
                self.serve(faulty.status(code))
                self.assert_clone_ends_with("upstream_error", "remote: ", "answered with an error")

    def test_a_redirect_is_not_followed_and_not_shown(self):
        ca = PrivateCa(self.stage.root / "elsewhere-ca")
        with FaultyUpstream(ca.leaf("forge.test"), faulty.status(200)) as elsewhere:
            for place in (f"https://{elsewhere.address}/acme/widget/info/refs?service=git-upload-pack",
                          "https://forge.test/acme/other/info/refs?service=git-upload-pack"):
                with self.subTest(place):
                    upstream = self.serve(faulty.redirect(place))
                    outcome = self.assert_clone_ends_with("upstream_redirect", "remote: ", "redirects elsewhere")
                    self.assertNotIn("redirecting to", outcome.text)
                    self.assertNotIn(elsewhere.address, outcome.text)
                    self.assertEqual(len(upstream.requests), 1)
            self.assertEqual(elsewhere.connections, 0)

    def test_no_byte_of_a_request_goes_to_a_server_with_a_bad_certificate(self):
        stranger = PrivateCa(self.stage.root / "stranger-ca")
        for name, leaf in (("another name", lambda ca: ca.leaf("elsewhere.test")),
                           ("expired", lambda ca: ca.leaf("forge.test", expired=True)),
                           ("unknown authority", lambda ca: stranger.leaf("forge.test"))):
            with self.subTest(name):
                upstream = self.serve(faulty.status(200), leaf=leaf)
                self.assert_clone_ends_with("upstream_tls", "remote: ", "certificate or handshake is not acceptable")
                self.assertEqual(upstream.requests, [])
                self.assertGreater(upstream.connections, 0)

    def test_upstream_is_down(self):
        with ClosedPort() as port:
            self.stage.write_config(port.address)
            self.assert_clone_ends_with("upstream_unreachable", "remote: ", "cannot be reached")

    def test_upstream_closes_before_it_answers(self):
        self.serve(faulty.close_at_once())
        self.assert_clone_ends_with("upstream_closed", "remote: ")

    def test_upstream_ends_in_the_middle_of_its_answer(self):
        self.serve(faulty.cut_body())
        self.assert_clone_ends_with("upstream_truncated", "fatal: ")

    def test_upstream_answers_what_is_not_http(self):
        for data in (b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200000 + b"\r\n\r\n"):
            with self.subTest(data[:60]):
                self.serve(faulty.raw(data))
                self.assert_clone_ends_with("upstream_malformed", "remote: ")

    def test_upstream_is_silent_for_longer_than_the_operator_lets_it(self):
        upstream = self.serve(faulty.hang(), config='\n[timeouts]\nfirst_byte = "1s"\n')
        outcome = self.assert_clone_ends_with("upstream_timeout", "remote: ", "The upstream took too long to answer.",
                                              "The requested URL returned error: 504")
        self.assertEqual(len(outcome.events("end")), 1, str(outcome))
        self.assertEqual(len(upstream.requests), 1)

    def test_a_client_that_gives_up_on_a_silent_upstream_takes_everything_with_it(self):
        upstream = self.serve(faulty.hang())
        running = self.stage.start(CLONE)
        running.wait_for(lambda: upstream.requests, "a request to the silent upstream")
        running.process.send_signal(signal.SIGINT)
        outcome = running.finish()
        self.assertIn(outcome.code, (harness.EXIT_SIGNAL_BASE + signal.SIGINT, 128), str(outcome))

    def test_a_body_of_an_error_page_does_not_carry_upstreams_words_with_the_credential(self):
        echo = faulty.status(500, body=f"you sent {self.stage.token}\n".encode())
        self.serve(echo)
        outcome = self.assert_clone_ends_with("upstream_error")
        self.assertNotIn(self.stage.token, outcome.text)


class CredentialFaults(E2E):
    def test_a_missing_or_open_credential_file_is_refused_with_its_name(self):
        def missing():
            self.stage.token_file.unlink()

        def readable():
            self.stage.write(self.stage.token_file, "x\n", self.stage.runner_uid, 0o644)

        def link():
            self.stage.token_file.unlink()
            self.stage.write(self.stage.home / "real", self.stage.token + "\n", self.stage.runner_uid, 0o600)
            self.stage.token_file.symlink_to("real")

        for spoil in (missing, readable, link):
            with self.subTest(spoil.__name__):
                spoil()
                outcome = self.assert_failed(self.run_inside(CLONE))
                # Said at the start, or when it is needed: with the file's name either way.
                self.assertIn(str(self.stage.token_file), outcome.stderr + str(outcome.audit), str(outcome))
                self.assertFalse((self.stage.work / "widget").exists())
                self.assertFalse([line for line in self.forge.log() if line.authorization_sent], str(outcome))

    def test_a_replaced_credential_is_used_from_then_on(self):
        ca = PrivateCa(self.stage.root / "faulty-ca")
        with FaultyUpstream(ca.leaf("forge.test"), faulty.status(404)) as upstream:
            self.stage.write(self.stage.ca, ca.pem.read_text(), self.stage.runner_uid)
            self.stage.write_config(upstream.address)
            running = self.stage.start("git ls-remote https://forge.test/acme/widget || true; checkpoint rotate\n"
                                       "git ls-remote https://forge.test/acme/widget || true")
            running.wait_for_checkpoint("rotate")
            fresh = self.stage.write(self.stage.home / "fresh", "another-token\n", self.stage.runner_uid, 0o600)
            os.rename(fresh, self.stage.token_file)
            running.pass_checkpoint("rotate")
            self.assert_ok(running.finish())
            sent = [base64.b64decode(r.authorization.split()[1]).decode() for r in upstream.requests]
            self.assertEqual(sent, [f"x-access-token:{self.stage.token}", "x-access-token:another-token"])

    def test_a_grant_without_a_credential_sends_none(self):
        self.stage.write_policy(policy(git_rule("forge.test/acme/widget", credential=None)))
        outcome = self.assert_failed(self.run_inside(CLONE))
        self.assert_shows(outcome, "remote: ")
        self.assertNotIn("could not read Username", outcome.text)
        self.assertEqual([line.authorization_sent for line in self.forge.log()], [False])

    def test_each_host_kind_sends_its_own_user(self):
        ca = PrivateCa(self.stage.root / "faulty-ca")
        for kind, user in (("generic", "x-access-token"), ("github", "x-access-token"), ("gitlab", "oauth2"),
                           ("gitea", "x-access-token"), ("bitbucket", "x-token-auth")):
            with self.subTest(kind), FaultyUpstream(ca.leaf("forge.test"), faulty.status(404)) as upstream:
                self.stage.write(self.stage.ca, ca.pem.read_text(), self.stage.runner_uid)
                self.stage.write_config(upstream.address)
                text = self.stage.config.read_text().replace('"generic"', f'"{kind}"')
                self.stage.write(self.stage.config, text, self.stage.runner_uid, 0o600)
                self.run_inside(CLONE)
                self.assertEqual([r.authorization for r in upstream.requests],
                                 ["Basic " + base64.b64encode(f"{user}:{self.stage.token}".encode()).decode()])


@in_both_flavours
class Kills(E2E):
    """A process dies in the middle of a transfer. The search for leftovers at the end of each is half the test."""

    def setUp(self):
        super().setUp()
        self.stage.write_policy(policy(git_rule("forge.test/acme/*", "push")))
        self.forge.add_widget("acme/slow", blob_bytes=2 << 20)
        if os.getuid() != 0:
            self.skipTest("finding the confined processes by their program needs root")

    def start_clone(self):
        self.forge.close_gate()
        running = self.stage.start("git clone https://forge.test/acme/slow s")
        running.wait_for(lambda: list(self.stage.work.glob("s/.git/objects/pack/tmp_pack_*")), "the middle of a clone")
        return running

    def start_push(self):
        self.forge.open_gate()
        # More than all buffers on the way together hold: what is left of it is never sent.
        running = self.stage.start(
            "git clone -q https://forge.test/acme/slow s; cd s; head -c 40000000 /dev/urandom >x\n"
            "git config core.compression 0; git config core.bigFileThreshold 1m; git add x\n"
            "git commit -q -m x; checkpoint committed; git push origin HEAD:agent", AUTHOR)
        running.wait_for_checkpoint("committed")
        self.forge.close_gate()
        requests = len(self.forge.log())
        running.pass_checkpoint("committed")
        running.wait_for(lambda: len(self.forge.log()) >= requests + 1 and list(
            self.forge.path("acme/slow").glob("objects/*incoming*/pack/tmp_pack_*")), "the middle of a push")
        return running

    def assert_ended_cleanly(self, running, refs):
        outcome = running.finish()
        self.assert_failed(outcome)
        self.forge.open_gate()
        self.forge.wait_idle()
        self.assertEqual(self.forge.refs("acme/slow"), refs)
        return outcome

    def check(self, program, number):
        for start in (self.start_clone, self.start_push):
            with self.subTest(start.__name__):
                refs = self.forge.refs("acme/slow")
                running = start()
                (victim,) = running.pids_of(program) if program != "sallyport" else [running.pid]
                os.kill(victim, number)
                outcome = self.assert_ended_cleanly(running, refs)
                if program == "sallyportd":
                    self.assert_shows(outcome, "the warden (sallyportd) died")
                elif program != "sallyport":
                    self.assert_shows(outcome, "fatal: " if start is self.start_clone else "error: ")
                shutil.rmtree(self.stage.work / "s", ignore_errors=True)
                for mark in self.stage.work.glob(".[ag][to]*"):
                    mark.unlink()

    def test_the_gate_is_killed(self):
        self.check("sallyport-gate", signal.SIGKILL)

    def test_the_vault_is_killed(self):
        self.check("sallyport-vault", signal.SIGKILL)

    def end_of_clone_without(self, program):
        (victim,) = self.running.pids_of(program)
        os.kill(victim, signal.SIGKILL)
        outcome = self.assert_failed(self.running.finish())
        self.forge.open_gate()
        self.assert_shows(outcome, f"sallyport: {program} died (signal 9) and is started again; ",
                          " are lost: run again what failed in the sandbox")
        return outcome

    def test_a_dead_gate_is_named_with_what_to_do(self):
        self.running = self.start_clone()
        self.assert_shows(self.end_of_clone_without("sallyport-gate"), "fatal: ")

    def test_a_dead_vault_is_named_with_what_to_do_by_git_too(self):
        self.forge.open_gate()
        self.forge.hold(1, "start")
        self.running = self.stage.start("git clone https://forge.test/acme/slow s")
        self.running.wait_for(self.forge.holds, "a request at the forge")
        outcome = self.end_of_clone_without("sallyport-vault")
        self.assert_shows(outcome, "The process that holds the credentials is not there; try again.",
                          "run it again with `sallyport run -v`, which names the audit log")
        (end,) = outcome.events("end")
        self.assertEqual(end["reason"], "vault_unavailable")
        self.assert_shows(outcome, f"request {end['request']}")

    def test_the_warden_is_killed(self):
        self.check("sallyportd", signal.SIGKILL)

    def test_sallyport_is_killed(self):
        self.check("sallyport", signal.SIGKILL)

    def test_sallyport_is_told_to_end(self):
        self.check("sallyport", signal.SIGTERM)

    def test_the_client_is_killed(self):
        self.check("git-remote-http", signal.SIGKILL)

    def test_the_audit_log_cannot_be_written(self):
        before = self.stage.traffic()
        outcome = self.assert_failed(self.run_inside(CLONE, ("--audit", "/dev/full")))
        self.assertEqual(self.stage.traffic(), before)
        self.assertFalse((self.stage.work / "widget").exists(), str(outcome))


if __name__ == "__main__":
    harness.main()
