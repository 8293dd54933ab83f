#!/usr/bin/python3
"""`sallyport logs` and `attach`: what a session did, and a shell in it."""

import json
import signal
import subprocess

import harness
from harness import EXIT_SALLYPORT_FAILED, in_both_flavours
from test_sessions import Daemon


@in_both_flavours
class Logs(Daemon):
    def refused_clone(self, session):
        outcome = self.exec(session, "git clone -q https://forge.test/acme/other || true")
        self.account_for(outcome.events("refused"))
        return outcome

    def logs(self, session, *options):
        return self.assert_ok(self.sallyport("logs", session, *options))

    def test_shows_the_sessions_own_lines(self):
        self.new("agent")
        other = self.stage.folder("other", self.stage.sandbox_uid, 0o755)
        self.new("other", "--workspace", other)
        self.refused_clone("agent")
        self.assert_ok(self.exec("agent", "git clone -q https://forge.test/acme/widget"))
        self.daemon.wait_for(self.every_request_has_its_end, "the last line of the clone")
        session = self.status("agent")["id"]
        mine = [line for line in self.stage.audit() if line["session"] == session]
        shown = self.logs("agent", "--json")
        self.assertEqual([json.loads(line) for line in shown.stdout.splitlines()], mine)
        raw = self.stage.audit_file.read_text().splitlines()
        self.assertLessEqual(set(shown.stdout.splitlines()), set(raw))

        text = self.logs("agent").stdout.splitlines()
        self.assertEqual(len(text), len(mine))
        self.assertRegex(text[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ session_start \(workspace ")
        refused = [line for line in text if " refused " in line]
        self.assertEqual(len(refused), 1)
        self.assertRegex(refused[0], r"Z refused       GET https://forge.test/acme/other/info/refs.*: repo_not_granted")
        self.assertTrue(any(" allowed " in line and "credential forge" in line for line in text), text)
        self.assertEqual(self.logs("agent", "-n", "1", "--json").stdout, shown.stdout.splitlines(True)[-1])
        self.assertEqual(self.logs("agent", "-n", "0").stdout, "")
        self.assertEqual(len(self.logs("other").stdout.splitlines()), 1)

    def test_follows_until_the_session_ends(self):
        self.new("agent")
        follower = self.stage.spawn(self.argv("logs", "agent", "--follow"))
        self.assertIn(b" session_start ", follower.process.stdout.readline())
        self.refused_clone("agent")
        self.assertIn(b" refused ", follower.process.stdout.readline())
        self.assert_ok(self.sallyport("stop", "agent"))
        rest = self.assert_ok(follower.finish())
        self.assertIn("session_end   (stopped)", rest.stdout)
        self.assertEqual(rest.stderr, "")
        self.assertIn("session_end", self.logs("agent", "--follow").stdout)  # which has ended already

    def test_a_follower_hears_of_the_daemons_end(self):
        self.new("agent")
        follower = self.stage.spawn(self.argv("logs", "agent", "--follow"))
        self.assertIn(b" session_start ", follower.process.stdout.readline())
        self.daemon.process.send_signal(signal.SIGKILL)
        self.daemon.finish()
        cut = follower.finish()
        self.assertEqual((cut.code, cut.stderr), (EXIT_SALLYPORT_FAILED, "sallyport: the log was cut: it was read too slowly, "
                                                                         "or the daemon has ended\n"))
        self.socket.unlink()

    def test_wrong_wishes_are_refused(self):
        self.new("agent")
        for query, text in (("lines=10001", "lines: must be a number"), ("lines=-1", "lines: must be a number"),
                            ("follow=0", "follow: must be 1"), ("x=1", "nothing that this call knows")):
            run = subprocess.run(["curl", "-s", "--unix-socket", self.socket, f"http://localhost/v1/sessions/agent/log?{query}"],
                                 capture_output=True, text=True, **self.stage.identity())
            self.assertIn(text, run.stdout, query)
        nobody = self.sallyport("logs", "nobody")
        self.assertEqual(nobody.code, EXIT_SALLYPORT_FAILED)
        self.assert_shows(nobody, "there is no session 'nobody'")


@in_both_flavours
class Attach(Daemon):
    def test_a_shell_with_this_terminal(self):
        self.new("agent")
        typed = []

        def answer(shown):
            if not typed and (b"$" in shown or b"#" in shown):
                typed.append(True)
                return b"test -t 0 && test -t 1 && echo shell-$((40+2)); exit 7\n"
            return b""
        outcome = self.stage.run_in_terminal([str(word) for word in self.argv("attach", "agent")], typed=answer, program=())
        self.assertEqual(outcome.code, 7, str(outcome))
        self.assert_shows(outcome, "shell-42")
        self.assertEqual(self.status("agent")["commands"], 0)

    def test_without_a_terminal_it_says_what_to_do(self):
        self.new("agent")
        refused = self.sallyport("attach", "agent")
        self.assertEqual((refused.code, refused.stdout, refused.stderr),
                         (EXIT_SALLYPORT_FAILED, "", "sallyport: this is no terminal: `sallyport exec agent -- COMMAND` needs none\n"))


if __name__ == "__main__":
    harness.main()
