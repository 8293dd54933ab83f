#!/usr/bin/python3
"""`sallyport gateway start` and `stop`: a daemon in the background, as its user starts and ends it."""

import subprocess

import harness
from harness import EXIT_SALLYPORT_FAILED, SALLYPORT, E2E, Flavour, in_both_flavours

STRANGER = 54321


class Gateway(E2E):
    def setUp(self):
        super().setUp()
        self.socket = self.stage.runtime / "sallyport/control.sock"
        self.state = self.stage.root / "home/daemon"
        self.stage.audit_file = self.state / "audit.jsonl"

    def tearDown(self):
        self.gateway("stop")
        if self.socket.parent.exists():
            self.socket.parent.rmdir()
        super().tearDown()

    def sallyport(self, *argv, **popen):
        return self.stage.spawn([SALLYPORT, *argv, "--socket", self.socket], **popen).finish()

    def gateway(self, action, *options, **popen):
        return self.sallyport("gateway", action, *options, **popen)

    def start(self, *options, **popen):
        return self.gateway("start", "--config", self.stage.config, "--state", self.state, *options, **popen)


@in_both_flavours
class StartAndStop(Gateway):
    def test_starts_is_ready_and_ends(self):
        nobody = self.sallyport("list")
        self.assertEqual(nobody.code, EXIT_SALLYPORT_FAILED)
        self.assert_shows(nobody, f"start it with `sallyport gateway start --socket {self.socket}`")

        started = self.assert_ok(self.start())
        log = self.state / "sallyportd.log"
        self.assertEqual((started.stdout, started.stderr),
                         ("", f"sallyport: the daemon is ready at {self.socket}; what it says is in {log}\n"))
        self.assertEqual(log.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.gateway("status").code, 0)
        again = self.assert_ok(self.start())
        self.assertEqual(again.stderr, f"sallyport: a daemon runs already at {self.socket}\n")

        self.assert_ok(self.sallyport("new", "agent", "--quiet"))
        stopped = self.assert_ok(self.gateway("stop"))
        self.assertEqual((stopped.stdout, stopped.stderr),
                         ("", "sallyport: sessions that end first: 1\nsallyport: the daemon has ended\n"))
        self.assertFalse(self.socket.exists())
        self.assertEqual([line["kind"] for line in self.stage.audit()], ["session_start", "session_end"])
        nobody = self.assert_ok(self.gateway("stop"))
        self.assertEqual(nobody.stderr, f"sallyport: no daemon runs at {self.socket}\n")

    def test_it_has_no_terminal_and_outlives_the_one_it_was_started_at(self):
        shown = self.stage.run_in_terminal([str(word) for word in (
            SALLYPORT, "gateway", "start", "--config", self.stage.config, "--state", self.state, "--socket", self.socket)],
            program=())
        self.assertEqual(shown.code, 0, str(shown))
        self.assertEqual(self.gateway("status").code, 0)

    def test_says_in_the_daemons_words_why_it_does_not_start(self):
        self.assert_ok(self.start())
        self.assert_ok(self.gateway("stop"))
        refused = self.start("--group", "no-such-group")
        self.assertEqual((refused.code, refused.stdout, refused.stderr),
                         (EXIT_SALLYPORT_FAILED, "", "sallyport: the daemon did not start: exit code 2\n"
                                                     "sallyportd: there is no group 'no-such-group'\n"))
        self.assertTrue((self.state / "sallyportd.log.old").exists())
        self.socket.parent.chmod(0o777)
        refused = self.start()
        self.assertEqual(refused.code, EXIT_SALLYPORT_FAILED)
        self.assert_shows(refused, "can be written by group or others: chmod go-w")
        self.socket.parent.chmod(0o700)


class GatewayWithOperators(Gateway):
    flavour = Flavour.AS_ROOT

    def test_an_operator_does_not_end_it(self):
        self.assert_ok(self.start("--group", "nogroup"))
        for folder in (self.stage.root, self.stage.home, self.stage.runtime):
            folder.chmod(0o755)
        run = subprocess.run(["curl", "-s", "-X", "POST", "--unix-socket", self.socket, "http://localhost/v1/shutdown"],
                             capture_output=True, text=True, user=STRANGER, group="nogroup", extra_groups=[])
        self.assertIn('"other_user"', run.stdout, run)
        self.assert_ok(self.gateway("status"))


if __name__ == "__main__":
    harness.main()
