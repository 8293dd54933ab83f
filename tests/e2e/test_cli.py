#!/usr/bin/python3
"""The command line: what it passes through, what it says, how it ends, and what it refuses to start with."""

import json
import os
import signal
import time
import socket
import subprocess

import harness
import processes
from harness import (EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_SALLYPORT_FAILED, EXIT_SIGNAL_BASE, EXIT_USAGE,
                     SALLYPORT, E2E, git_rule, in_both_flavours, policy)


@in_both_flavours
class Run(E2E):
    def test_the_exit_code_is_the_commands(self):
        self.stage.put("plain", "not a program", 0o644)
        for command, code in ((["true"], 0), (["false"], 1), (["sh", "-c", "exit 42"], 42),
                              (["no-such-program"], EXIT_NOT_FOUND), (["./plain"], EXIT_NOT_EXECUTABLE),
                              (["sh", "-c", "kill -TERM $$"], EXIT_SIGNAL_BASE + signal.SIGTERM),
                              (["sh", "-c", "kill -KILL $$"], EXIT_SIGNAL_BASE + signal.SIGKILL)):
            with self.subTest(command):
                outcome = self.run_inside(command)
                self.assertEqual(outcome.code, code, str(outcome))

    def test_input_and_output_pass_unchanged(self):
        data = os.urandom(1 << 20)
        process = self.stage.start(["cat"], ("--quiet",), stdin=subprocess.PIPE).process
        stdout, _ = process.communicate(data, timeout=harness.RUN_TIMEOUT_SECONDS)
        self.assertEqual((process.returncode, stdout == data), (0, True))

    def test_the_two_outputs_stay_apart_and_quiet_adds_nothing(self):
        outcome = self.assert_ok(self.run_inside("echo out; echo err >&2", ("--quiet",)))
        self.assertEqual((outcome.stdout, outcome.stderr), ("out\n", "err\n"))

    def test_it_says_at_the_end_in_one_line_what_was_allowed_and_refused(self):
        outcome = self.run_inside("git clone -q https://forge.test/acme/widget\n"
                                  "git clone -q https://forge.test/acme/other || true")
        self.assert_ok(outcome)
        last = outcome.stderr.strip().splitlines()[-1]
        self.assertIn("allowed", last)
        self.assertIn("refused", last)
        self.assertEqual(outcome.stdout, "")
        self.assertEqual([line["reason"] for line in outcome.events("refused")], ["repo_not_granted"])
        self.account_for(outcome.events("refused"))

    def test_signals_reach_the_command(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                running = self.stage.start(f"trap 'echo got; exit 7' {number.value}\nexec 3<>/dev/null\n: >ready\n"
                                           "while :; do sleep 0.05; done")
                running.wait_for((self.stage.work / "ready").exists, "the trap")
                running.process.send_signal(number)
                outcome = running.finish()
                self.assertEqual((outcome.code, "got" in outcome.stdout), (7, True), str(outcome))
                (self.stage.work / "ready").unlink()

    def test_last_words_are_heard_although_the_sandbox_has_ended(self):
        # While the warden is held up, init says two things (its command was stopped, and has exited) and ends.
        running = self.stage.start("checkpoint held\n"
                                   "(until grep -q '^State:.T' /proc/$$/status; do :; done; kill -CONT $$) &\n"
                                   "kill -STOP $$; wait; exit 42")
        running.wait_for_checkpoint("held")
        warden, sandbox = running.pids_of("sallyportd")[0], running.pids_of("bwrap")[0]
        os.kill(warden, signal.SIGSTOP)
        running.pass_checkpoint("held")
        running.wait_for(lambda: sandbox not in running.tree(), "the sandbox's end")
        os.kill(warden, signal.SIGCONT)
        # It stops as its command did. A signal more would wake what the leak checker stops at the end.
        while running.process.poll() is None:
            if processes.is_stopped(running.pid):
                running.process.send_signal(signal.SIGCONT)
            time.sleep(0.02)
        outcome = running.finish()
        self.assertEqual(outcome.code, 42, str(outcome))
        self.assertEqual(outcome.events("alarm"), [])

    def test_a_signal_before_the_command_runs_ends_everything(self):
        # At once when bubblewrap is there, and a little later: in its first milliseconds its parts are not tied together.
        for milliseconds in (0, 1, 2, 4, 8, 16, 32):
            with self.subTest(milliseconds):
                running = self.stage.start("exec sleep 1000")
                running.wait_for(lambda: running.pids_of("bwrap"), "bubblewrap")
                time.sleep(milliseconds / 1000)
                running.process.send_signal(signal.SIGTERM)
                self.assertEqual(running.finish().code, harness.EXIT_SIGNAL_BASE + signal.SIGTERM)
                self.assertEqual(self.stage.snapshot.left_over(self.forge.pids()), [])

    def test_runs_in_a_shells_background(self):
        script = f"set -m; {harness.SALLYPORT} run -- sh -c 'echo inside' & wait $!; echo code $?"
        outcome = self.stage.run_in_terminal(["bash", "-c", script], program=())
        self.assert_shows(outcome, "inside", "code 0")

    def test_the_workspace_is_the_owners(self):
        self.assert_ok(self.run_inside("echo x >made; test -w . ; id -u"))
        self.assertEqual((self.stage.work / "made").stat().st_uid, harness.TEST_UID)

    def test_home_and_tmp_are_private_and_empty(self):
        secret = self.stage.write(self.stage.home / "secret", "s", self.stage.runner_uid)
        outcome = self.assert_ok(self.run_inside(f'test ! -e "{secret}"; test ! -e "{self.stage.token_file}"\n'
                                                 'test -z "$(ls -A "$HOME" | grep -v -x -e .config -e .gitconfig)"\n'
                                                 'touch /tmp/of-a-sandbox "$HOME/y"; echo fine'))
        self.assertIn("fine", outcome.stdout)
        self.assertFalse(os.path.exists("/tmp/of-a-sandbox"))

    def test_spaces_and_links_in_the_workspaces_path_work(self):
        spaced = self.stage.folder("a work space", self.stage.sandbox_uid, 0o755)
        link = self.stage.root / "link"
        link.symlink_to(spaced)
        for cwd in (spaced, link):
            with self.subTest(cwd):
                self.stage.write(spaced / "sallyport.toml", harness.WIDGET_PUSH, self.stage.sandbox_uid)
                outcome = self.run_inside(["git", "clone", "-q", "https://forge.test/acme/widget", cwd.name], cwd=cwd)
                self.assert_ok(outcome)
                self.assertTrue((spaced / cwd.name / "README").exists())

    def test_a_terminal_is_a_terminal_inside(self):
        outcome = self.stage.run_in_terminal("test -t 0 && test -t 1 && test -t 2 && stty size && echo yes")
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertIn("yes", outcome.stdout)

    def test_control_c_interrupts_the_command_and_not_sallyport(self):
        typed = []

        def interrupt(shown):
            if b"ready" in shown and not typed:
                typed.append(True)
                return b"\x03"
            return b""
        outcome = self.stage.run_in_terminal("trap 'echo interrupted; exit 9' INT; echo ready; "
                                             "while :; do sleep 0.05; done", typed=interrupt)
        self.assertEqual(outcome.code, 9, str(outcome))
        self.assertIn("interrupted", outcome.stdout)
        self.assertEqual(len(outcome.events("session_end")), 1)

    def test_what_is_typed_arrives(self):
        outcome = self.stage.run_in_terminal("read line; echo \"got $line\"", typed=b"hello\n")
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertIn("got hello", outcome.stdout)


class Options(E2E):
    def test_env_passes_what_is_named_and_nothing_else(self):
        env = self.stage.environment(PASSED="one", KEPT_BACK="two")
        outcome = self.assert_ok(self.run_inside('echo "[$PASSED][$KEPT_BACK][$GIVEN]"',
                                                 ("--env", "PASSED", "--env", "GIVEN=three"), env=env))
        self.assertIn("[one][][three]", outcome.stdout)

    def test_mounts_are_read_only_when_asked(self):
        shared = self.stage.folder("shared", self.stage.sandbox_uid, 0o755)
        self.stage.write(shared / "file", "content\n", self.stage.sandbox_uid)
        outcome = self.run_inside(f'cat "{shared}/file"; echo x >"{shared}/new"', ("--mount", f"{shared}:ro"))
        self.assert_failed(outcome)
        self.assertIn("content", outcome.stdout)
        self.assertFalse((shared / "new").exists())
        self.assert_ok(self.run_inside(f'echo x >"{shared}/new"', ("--mount", str(shared))))
        self.assertTrue((shared / "new").exists())

    def test_git_grants_on_the_command_line(self):
        self.stage.policy.unlink()
        self.stage.write_config(self.forge.address, 'credential = "forge"\n')
        outcome = self.assert_ok(self.run_inside(
            "git clone -q https://forge.test/acme/widget; cd widget; git push -q origin HEAD:refs/heads/agent",
            ("--git", "forge.test/acme/widget:push")))
        self.assertIn("--git", outcome.events("begin")[0]["rule"])
        self.assert_refused("push_not_granted", "cd widget; git push -q origin HEAD:refs/heads/b",
                            ("--git", "forge.test/acme/widget"))

    def test_policy_config_and_audit_are_read_from_where_they_are_named(self):
        for name, path in (("policy", self.stage.policy), ("config", self.stage.config)):
            os.rename(path, self.stage.root / name)
        log = self.stage.state / "elsewhere.jsonl"
        self.assert_ok(self.run_inside(["git", "clone", "-q", "https://forge.test/acme/widget"],
                                       ("--policy", self.stage.root / "policy", "--config", self.stage.root / "config",
                                        "--audit", log)))
        self.assertEqual(self.stage.audit(), [])
        lines = self.stage.audit(log)
        self.check_audit(lines)
        self.assertEqual([lines[0]["kind"], lines[-1]["kind"]], ["session_start", "session_end"])

    def test_the_default_audit_log_is_private(self):
        self.assert_ok(self.run_inside(["true"]))
        self.assertEqual(self.stage.audit_file.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.stage.audit_file.parent.stat().st_mode & 0o077, 0)

    def test_verbose_shows_each_refusal(self):
        outcome = self.assert_refused("repo_not_granted", "git clone -q https://forge.test/acme/other || true",
                                      ("--verbose",), succeeds=True)
        self.assertIn("repo_not_granted", outcome.stderr)

    def test_wrong_use_is_told_apart(self):
        for argv in ((), ("run",), ("run", "--"), ("run", "--no-such-option", "--", "true"), ("nonsense",),
                     ("run", "--git", "--", "true"), ("policy", "nonsense")):
            with self.subTest(argv):
                outcome = self.stage.cli(*argv)
                self.assertEqual(outcome.code, EXIT_USAGE, str(outcome))
                self.assertTrue(outcome.stderr)

    def test_help_and_version_are_data(self):
        for argv in (("--help",), ("run", "--help"), ("policy", "--help"), ("--version",)):
            with self.subTest(argv):
                outcome = self.assert_ok(self.stage.cli(*argv))
                self.assertTrue(outcome.stdout)
                self.assertEqual(outcome.stderr, "")


class WillNotStart(E2E):
    def assert_will_not_start(self, *shows, options=(), **popen):
        before = self.stage.traffic()
        outcome = self.run_inside(["true"], options, **popen)
        self.assertEqual(outcome.code, EXIT_SALLYPORT_FAILED, str(outcome))
        for fragment in shows:
            self.assertIn(fragment, outcome.stderr, str(outcome))
        self.assertEqual(self.stage.traffic(), before)
        return outcome

    def test_with_a_policy_that_does_not_lint(self):
        self.stage.write_policy('version = 1\n[[git]]\nrepo = "forge.test/acme/widget"\nacess = "push"\n')
        self.assert_will_not_start("sallyport.toml:4:1", "acess")

    def test_with_a_credential_that_nobody_defines(self):
        self.stage.write_policy(policy(git_rule("forge.test/acme/widget", credential="nobody")))
        self.assert_will_not_start("sallyport.toml:", "nobody")

    def test_with_a_readable_or_foreign_operators_file(self):
        for mode in (0o644, 0o640, 0o606):
            with self.subTest(mode):
                self.stage.config.chmod(mode)
                self.assert_will_not_start("config.toml")
        self.stage.config.chmod(0o600)
        if os.getuid() == 0:
            os.chown(self.stage.config, 1, 1)
            self.stage.config.chmod(0o644)
            self.assert_will_not_start("config.toml")

    def test_with_a_missing_file_that_was_named(self):
        self.assert_will_not_start("nowhere.toml", options=("--policy", "nowhere.toml"))
        self.assert_will_not_start("nowhere.toml", options=("--config", "nowhere.toml"))

    def test_in_a_dangerous_workspace(self):
        for path in ("/", "/etc", "/proc", str(self.stage.home)):
            with self.subTest(path):
                self.assert_will_not_start(cwd=path, options=("--policy", self.stage.policy))

    def test_with_dangerous_mounts(self):
        ssh = self.stage.folder("home/.ssh", self.stage.runner_uid, 0o700)
        inner = self.stage.folder("home/.ssh/inner", self.stage.runner_uid, 0o700)
        link = self.stage.root / "innocent"
        link.symlink_to(ssh)
        for path in (ssh, inner, link, self.stage.home, self.stage.config.parent, "/etc", "/proc", "/sys", "/dev", "/",
                     "/run"):
            with self.subTest(path):
                self.assert_will_not_start(options=("--mount", path))

    def test_with_a_socket_as_a_mount(self):
        with socket.socket(socket.AF_UNIX) as server:
            path = self.stage.root / "docker.sock"
            server.bind(str(path))
            self.addCleanup(path.unlink)
            self.assert_will_not_start(options=("--mount", path))

    def test_as_root_in_a_workspace_of_root(self):
        if os.getuid() != 0:
            self.skipTest("needs root")
        folder = self.stage.folder("roots", 0, 0o755)
        outcome = self.stage.spawn([SALLYPORT, "run", "--config", "/dev/null", "--", "id", "-u"], cwd=folder).finish()
        # Refused, or run as somebody who is not root: never with root's uid.
        self.assertNotEqual(outcome.stdout.strip(), "0", str(outcome))


class Policy(E2E):
    def test_check_accepts_a_good_file_and_places_a_bad_one(self):
        self.assert_ok(self.stage.cli("policy", "check"))
        self.assert_ok(self.stage.cli("policy", "check", self.stage.policy))
        bad = self.stage.put("bad.toml", 'version = 1\n\n[[git]]\nrepo = "forge.test/acme/widget"\naccess = "write"\n')
        outcome = self.stage.cli("policy", "check", bad)
        self.assertEqual(outcome.code, 1, str(outcome))
        self.assertRegex(outcome.text, r"bad\.toml:5:\d+: ")

    def test_check_says_of_later_keys_that_they_come_later(self):
        for key in ("lfs = true", 'push = { refs = ["refs/heads/agent/*"] }'):
            with self.subTest(key):
                bad = self.stage.put("later.toml", f'version = 1\n[[git]]\nrepo = "forge.test/a/b"\naccess = "push"\n{key}\n')
                outcome = self.stage.cli("policy", "check", bad)
                self.assertEqual(outcome.code, 1, str(outcome))
                self.assertRegex(outcome.text, r"later\.toml:5:\d+: ")

    def test_explain_names_the_rule_or_the_closest_and_what_to_add(self):
        outcome = self.stage.cli("policy", "explain", "https://forge.test/acme/widget")
        self.assertIn("sallyport.toml:3", outcome.stdout)
        self.assertIn("allowed: ", outcome.stdout)
        outcome = self.stage.cli("policy", "explain", "--push", "forge.test/acme/other")
        self.assertIn("refused: ", outcome.stdout)
        self.assertIn('repo = "forge.test/acme/other"', outcome.stdout)
        self.stage.write_policy(policy(git_rule("forge.test/acme/widget", "fetch")))
        outcome = self.stage.cli("policy", "explain", "--push", "forge.test/acme/widget")
        self.assertIn("refused: ", outcome.stdout)
        self.assertIn("sallyport.toml:3", outcome.stdout)

    def test_explain_judges_what_is_not_git(self):
        self.stage.write_policy(policy(git_rule("forge.test/acme/widget"), '\n[[allow]]\nhost = "api.test"\npaths = ["/v1/**"]\n'
                                       '\n[[deny]]\nhost = "api.test"\npaths = ["/v1/admin/**"]\n\n[[tcp]]\nhost = "db.test"\nport = 5432\n'))
        for argv, kind, says in ((("https://api.test/v1/x",), "allow", "api.test (GET, HEAD; /v1/**)"),
                                 (("https://api.test/v1/admin/x",), "deny", "api.test (every method; /v1/admin/**)"),
                                 (("db.test:5432",), "tcp", "db.test:5432")):
            with self.subTest(argv):
                answer = json.loads(self.stage.cli("policy", "explain", "--json", *argv).stdout)
                self.assertEqual((answer["rule"]["kind"], answer["rule"]["says"]), (kind, says))
                self.assertEqual(answer["allowed"], kind != "deny")
        answer = json.loads(self.stage.cli("policy", "explain", "--json", "--method", "POST", "https://api.test/v1/x").stdout)
        self.assertEqual((answer["reason"], answer["closest"]["kind"]), ("method_not_granted", "allow"))
        self.assertIn('methods = ["POST"]', answer["add"])

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.forge.traffic(), (0, 0))


if __name__ == "__main__":
    harness.main()
