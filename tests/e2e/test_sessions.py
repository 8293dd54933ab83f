#!/usr/bin/python3
"""Sessions at a daemon: `new`, `exec`, `list`, `status`, `stop`, `start` and `destroy`, as a user has them."""

import grp
import json
import os
import signal
import socket
import subprocess

import harness
import processes
from harness import (EXIT_NOT_FOUND, EXIT_SALLYPORT_FAILED, EXIT_SIGNAL_BASE, EXIT_USAGE, SALLYPORT, E2E, Flavour,
                     Outcome, in_both_flavours)

DAEMON = SALLYPORT.parent / "sallyportd"
THEIR_TEAM = 64123  # a group without a name


class Daemon(E2E):
    def setUp(self):
        super().setUp()
        self.socket = self.stage.runtime / "sallyport/control.sock"
        self.state = self.stage.root / "daemon"
        self.stage.audit_file = self.state / "audit.jsonl"
        self.run_inside = self.exec_in_agent
        self.daemon = self.start_daemon()

    def tearDown(self):
        if self.daemon.process.poll() is None:
            self.daemon.process.send_signal(signal.SIGTERM)
            self.assertEqual(self.daemon.finish().code, 0)
        self.socket.parent.rmdir()  # which the daemon leaves, and leaves empty
        super().tearDown()

    def start_daemon(self, *options):
        daemon = self.stage.spawn([DAEMON, "--socket", self.socket, "--config", self.stage.config,
                                   "--state", self.state, *options])
        daemon.wait_for(lambda: self.sallyport("list").code == 0, "the daemon's first answer")
        return daemon

    def argv(self, command, *rest):
        return [SALLYPORT, *command.split(), "--socket", self.socket, *rest]

    def sallyport(self, command, *rest, **popen):
        return self.stage.spawn(self.argv(command, *rest), **popen).finish()

    def new(self, *options):
        outcome = self.assert_ok(self.sallyport("new", "--quiet", *options))
        return outcome.stdout.strip()

    def exec(self, session, script, *options, **popen):
        command = ["sh", "-ec", script] if isinstance(script, str) else script
        return self.sallyport("exec", session, *options, "--", *command, **popen)

    def exec_in_agent(self, script, options=(), **popen):
        return self.exec("agent", script, *options, **popen)

    def sessions(self):
        return json.loads(self.assert_ok(self.sallyport("list", "--json")).stdout)["sessions"]

    def status(self, session):
        return json.loads(self.assert_ok(self.sallyport("status", session, "--json")).stdout)

    def assert_codes_and_outputs_are_the_commands(self):
        for command, code in ((["true"], 0), (["sh", "-c", "exit 42"], 42), (["no-such-program"], EXIT_NOT_FOUND),
                              (["sh", "-c", "kill -KILL $$"], EXIT_SIGNAL_BASE + signal.SIGKILL)):
            self.assertEqual(self.exec("agent", command).code, code, command)
        outcome = self.exec("agent", "echo out; echo err >&2")
        self.assertEqual((outcome.stdout, outcome.stderr), ("out\n", "err\n"))
        data = os.urandom(1 << 20)
        process = self.stage.spawn(self.argv("exec", "agent", "--", "cat"), stdin=subprocess.PIPE).process
        stdout, _ = process.communicate(data, timeout=harness.RUN_TIMEOUT_SECONDS)
        self.assertEqual((process.returncode, stdout == data), (0, True))


@in_both_flavours
class Sessions(Daemon):
    def test_a_session_stays_from_command_to_command(self):
        self.assertEqual(self.new("agent"), "agent")
        self.assert_ok(self.exec("agent", "echo kept >/tmp/inside; echo made >made"))
        self.assertEqual(self.exec("agent", "cat /tmp/inside made; pwd").stdout, f"kept\nmade\n{self.stage.work}\n")
        self.assertEqual((self.stage.work / "made").stat().st_uid, self.stage.sandbox_uid)
        shown = self.status("agent")
        self.assertEqual((shown["name"], shown["state"], shown["owner"], shown["workspace"], shown["commands"]),
                         ("agent", "running", self.stage.runner_uid, str(self.stage.work), 0))
        self.assertEqual(self.status(shown["id"][:8])["name"], "agent")

        self.assert_ok(self.sallyport("stop", "agent"))
        self.assertEqual([each["state"] for each in self.sessions()], ["ended"])
        refused = self.exec("agent", "true")
        self.assertEqual(refused.code, EXIT_SALLYPORT_FAILED)
        self.assert_shows(refused, "does not run", "`sallyport start agent`")
        self.assert_ok(self.sallyport("stop", "agent"))  # as it is already

        self.assert_ok(self.sallyport("start", "agent", "--quiet"))
        self.assertNotEqual(self.status("agent")["id"], shown["id"])
        self.assertEqual(self.exec("agent", "cat made; test ! -e /tmp/inside").stdout, "made\n")
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.assertEqual(self.sessions(), [])
        self.assertEqual([(line["kind"], line.get("detail", "")[:7]) for line in self.stage.audit()],
                         [("session_start", "workspa"), ("session_end", "stopped")] * 2)

    def test_a_name_is_free_as_soon_as_its_session_is_being_destroyed(self):
        self.new("agent")
        (vault,) = self.daemon.pids_of("sallyport-vault")
        os.kill(vault, signal.SIGSTOP)  # whose last words a session's end waits for
        destroyed = self.stage.spawn(self.argv("destroy", "agent"))
        self.daemon.wait_for(lambda: self.sessions() == [], "the session out of sight")
        made = self.stage.spawn(self.argv("new", "agent", "--quiet"))
        self.daemon.wait_for(lambda: len(self.sessions()) == 1, "the next of its name")
        os.kill(vault, signal.SIGCONT)
        self.assert_ok(destroyed.finish())
        self.assert_ok(made.finish())
        self.assert_ok(self.exec("agent", "true"))

    def test_git_works_in_it_and_the_credential_stays_outside(self):
        self.new("agent")
        self.assert_ok(self.exec("agent", "git clone -q https://forge.test/acme/widget\ncd widget\n"
                                          "git commit -q --allow-empty -m from-inside\ngit push -q origin HEAD:new",
                                 *harness.AUTHOR))
        self.assertIn("from-inside", self.forge.repo_git("acme/widget", "log", "-1", "--format=%s", "new"))
        inside = self.exec("agent", "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; git config --list --show-origin")
        self.assertNotIn(self.stage.token, inside.text)
        self.assertEqual({line["credential"] for line in self.stage.audit() if line["kind"] == "credential"}, {"forge"})

    def test_a_refusal_is_a_refusal(self):
        self.new("agent")
        self.assert_refused("repo_not_granted", "git clone -q https://forge.test/acme/other",
                            shows=("The policy does not grant this repository.",))
        self.assertIn("1 refused (repo_not_granted 1)", self.status("agent")["summary"])

    def test_one_session_has_not_the_grant_of_another(self):
        bare = self.stage.folder("bare", self.stage.sandbox_uid, 0o755)
        self.new("rich")
        self.new("agent", "--workspace", bare)
        self.assert_refused("policy_empty", "git clone -q https://forge.test/acme/widget", lines=None)
        self.assert_ok(self.exec("rich", "git clone -q https://forge.test/acme/widget"))

    def test_exit_codes_and_outputs_are_the_commands(self):
        self.new("agent")
        self.assert_codes_and_outputs_are_the_commands()

    def test_signals_reach_the_command(self):
        self.new("agent")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            running = self.stage.spawn(self.argv("exec", "agent", "--", "sh", "-c", f"trap 'echo got; exit 7' {number.value}; "
                                                 ": >ready; while :; do sleep 0.05; done"))
            running.wait_for((self.stage.work / "ready").exists, "the trap")
            running.process.send_signal(number)
            outcome = running.finish()
            self.assertEqual((outcome.code, outcome.stdout), (7, "got\n"), str(outcome))
            (self.stage.work / "ready").unlink()

    def test_a_terminal_is_a_terminal_inside(self):
        self.new("agent")
        program = (*self.argv("exec", "agent"), "--env", "X=y")
        outcome = self.stage.run_in_terminal("test -t 0 && test -t 1 && test -t 2 && stty size && echo \"$X\" >/dev/tty",
                                             program=program)
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertIn("y", outcome.stdout)

    def test_a_command_whose_caller_is_killed_is_killed(self):
        self.new("agent")
        running = self.stage.spawn(self.argv("exec", "agent", "--", "sh", "-c", ": >ready; exec sleep 1000"))
        running.wait_for((self.stage.work / "ready").exists, "the command")
        self.assertEqual(self.status("agent")["commands"], 1)
        running.kill()
        self.daemon.wait_for(lambda: self.status("agent")["commands"] == 0, "the command's end")
        self.assert_ok(self.exec("agent", "true"))

    def test_stop_lets_commands_end_by_themselves(self):
        self.new("agent")
        running = self.stage.spawn(self.argv("exec", "agent", "--", "sh", "-c",
                                             "trap 'echo last words >said; exit 3' TERM; : >ready; while :; do sleep 0.05; done"))
        running.wait_for((self.stage.work / "ready").exists, "the command")
        self.assert_ok(self.sallyport("stop", "agent"))
        self.assertEqual(running.finish().code, 3)
        self.assertEqual((self.stage.work / "said").read_text(), "last words\n")

    def test_a_sessions_time_is_limited(self):
        for option, words in (("--ttl", "its time was up (ttl of 1 s)"), ("--idle", "no use of a credential for 1 s")):
            self.new("agent", option, "1s")
            self.daemon.wait_for(lambda: self.status("agent")["state"] == "ended", "the session's end")
            self.assertIn(words, self.status("agent")["summary"])
            self.assertIn(words, [line["detail"] for line in self.stage.audit() if line["kind"] == "session_end"][-1])
            self.assert_ok(self.sallyport("destroy", "agent"))

    def test_a_time_is_shown_and_checked(self):
        self.new("agent", "--idle", "366day")
        self.assertEqual(self.status("agent")["idle_seconds"], 366 * 86400)
        self.assert_ok(self.exec("agent", "git clone -q https://forge.test/acme/widget"))
        self.assert_shows(self.assert_failed(self.sallyport("new", "--ttl", "8")), "ttl: must be a time")

    def test_uses_of_credentials_are_limited(self):
        self.new("agent", "--max-uses", "6")
        ls = "git ls-remote https://forge.test/acme/widget >/dev/null"  # two requests
        for _ in range(2):
            self.assert_ok(self.exec("agent", ls))
        # Another vault goes on counting.
        os.kill(self.daemon.pids_of("sallyport-vault")[0], signal.SIGKILL)
        self.daemon.wait_for(lambda: self.exec("agent", ls).code == 0, "the last that it may")
        shown = self.status("agent")
        self.assertEqual((shown["max_uses"], shown["uses"]), (6, 6))
        before = self.stage.traffic()
        outcome = self.assert_failed(self.exec("agent", ls))
        self.assert_shows(outcome, "The session has used its credentials as often as it may.")
        self.assertEqual([line["reason"] for line in outcome.audit if line["kind"] in ("credential", "end")],
                         ["uses_spent"] * 2, str(outcome))
        self.assertEqual(self.stage.traffic(), before)
        self.assert_ok(self.sallyport("stop", "agent"))
        self.assert_ok(self.sallyport("start", "agent", "--quiet"))
        self.assert_ok(self.exec("agent", ls))

    def test_wrong_use_is_told(self):
        self.new("agent")
        for argv, code, words in (
                (("new", "agent"), EXIT_SALLYPORT_FAILED, "there is a session 'agent' already"),
                (("new", "-x"), EXIT_USAGE, ""),
                (("new", "a/b"), EXIT_SALLYPORT_FAILED, "is no name"),
                (("new", "--workspace", "/nonexistent"), EXIT_SALLYPORT_FAILED, "/nonexistent"),
                (("new", "--policy", "/nonexistent/p.toml"), EXIT_SALLYPORT_FAILED, "does not exist"),
                (("new", "--env", "HOME=/x"), EXIT_SALLYPORT_FAILED, "--env HOME"),
                (("status", "nobody"), EXIT_SALLYPORT_FAILED, "there is no session 'nobody'"),
                (("status", "a b"), EXIT_SALLYPORT_FAILED, "there is no session 'a b'"),
                (("start", "agent"), EXIT_SALLYPORT_FAILED, "the session 'agent' is running"),
                (("stop", "nobody", "agent"), EXIT_SALLYPORT_FAILED, "there is no session 'nobody'"),
                (("exec", "agent"), EXIT_USAGE, "-- COMMAND"),
                (("exec", "nobody", "--", "true"), EXIT_SALLYPORT_FAILED, "`sallyport list`"),
                (("list", "--", "x"), EXIT_USAGE, "")):
            with self.subTest(argv):
                outcome = self.sallyport(*argv)
                self.assertEqual(outcome.code, code, str(outcome))
                self.assert_shows(outcome, words)
        self.assertEqual([each["name"] for each in self.sessions()], ["agent"])

    def test_exec_refuses_what_would_be_a_way_out(self):
        self.new("agent")
        for variable in ("HOME=/x", "GIT_CONFIG_COUNT=0", "SSL_CERT_FILE=/x"):
            self.assert_shows(self.assert_failed(self.exec("agent", "true", "--env", variable)), "set by Sallyport")
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as tcp, \
                socket.socket(socket.AF_UNIX) as control:
            folder = os.open("/", os.O_RDONLY)
            self.addCleanup(os.close, folder)
            control.connect(str(self.socket))
            for way_out, words in ((folder, "is a folder"), (tcp, "is a socket"), (control, "leads to a named one")):
                for outcome in (self.exec("agent", "true", stdin=way_out), self.stage.run("true", stdin=way_out)):
                    self.assert_shows(self.assert_failed(outcome), words)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.assert_ok(self.exec("agent", "echo through the pair >&0", stdin=theirs))
            self.assertEqual(ours.recv(100), b"through the pair\n")

    def test_a_sandbox_does_not_get_what_is_the_daemons(self):
        for folder in (self.state, self.state / "clones", self.state / "trust", self.socket.parent, self.socket,
                       self.stage.config.parent):
            for option in ("--mount", "--workspace"):
                with self.subTest(folder, option=option):
                    refused = self.assert_failed(self.sallyport("new", option, folder))
                    self.assertNotIn("bug", refused.text)
        self.assertEqual(self.sessions(), [])

    def test_who_hangs_up_harms_nobody(self):
        body = json.dumps({"workspace": str(self.stage.work), "home": str(self.stage.home), "git": ["forge.test/a/b"]})
        request = (f"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
        for _ in range(12):  # fewer than a user may have connected
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(str(self.socket))
                caller.sendall(request)
        self.daemon.wait_for(lambda: self.sessions() == [], "the end of sessions that nobody wants")
        self.daemon.wait_for(lambda: not self.daemon.pids_of("bwrap"), "their sandboxes' end")

    def test_a_command_that_stopped_itself_can_be_ended(self):
        self.new("agent")
        running = self.stage.spawn(self.argv("exec", "agent", "--", "sh", "-c", ": >ready; kill -STOP $$"))
        running.wait_for((self.stage.work / "ready").exists, "the command")
        running.process.send_signal(signal.SIGTERM)
        self.assertEqual(running.finish().code, EXIT_SIGNAL_BASE + signal.SIGTERM)

    def test_what_would_hold_git_up_is_told_and_not_waited_for(self):
        (self.stage.work / ".git").mkdir()
        git = ["git", "init", "-q", self.stage.work]
        subprocess.run(git, check=True, env={"PATH": harness.PATH, "HOME": "/nonexistent"})
        for path in (self.stage.work / ".git", *(self.stage.work / ".git").rglob("*")):
            os.chown(path, self.stage.sandbox_uid, self.stage.sandbox_uid)
        self.new("agent")
        self.assert_ok(self.exec("agent", "mkfifo .git/index"))
        self.assert_shows(self.assert_ok(self.sallyport("stop", "agent")), "git cannot list the submodules")

    def test_what_fails_half_way_or_loses_its_caller_leaves_nothing(self):
        vault = self.daemon.pids_of("sallyport-vault")[0]
        os.kill(vault, signal.SIGSTOP)  # so that no session gets ready
        running = self.stage.spawn(self.argv("new", "agent"))
        self.daemon.wait_for(lambda: self.daemon.pids_of("bwrap"), "the sandbox")
        self.assertEqual([each["state"] for each in self.sessions()], ["starting"])
        running.kill()
        self.daemon.wait_for(lambda: self.sessions() == [], "the session's end")
        self.daemon.wait_for(lambda: not self.daemon.pids_of("bwrap"), "the sandbox's end")
        os.kill(vault, signal.SIGCONT)
        self.stage.write(self.stage.token_file, "", self.stage.runner_uid, 0o600)
        self.assert_failed(self.sallyport("new", "agent"))
        self.assertEqual(self.sessions(), [])

    def test_the_gateways_status_is_an_exit_code(self):
        shown = self.assert_ok(self.sallyport("gateway status"))
        self.assertRegex(shown.stdout, r"^ready: sallyportd \d")
        self.assertTrue(json.loads(self.assert_ok(self.sallyport("gateway status", "--json")).stdout)["ready"])
        nobody = self.stage.spawn([SALLYPORT, "gateway", "status", "--socket", self.stage.runtime / "none/s"]).finish()
        self.assertEqual(nobody.code, 1)
        self.assert_shows(nobody, "sallyportd is not running", "start it with")

    def test_its_numbers_are_those_of_the_audit_log(self):
        self.new("agent")
        self.new("idle")
        self.assert_ok(self.exec("agent", "git clone -q https://forge.test/acme/widget"))
        self.assert_refused("repo_not_granted", "git clone -q https://forge.test/acme/other")
        self.assert_ok(self.sallyport("stop", "idle"))
        text = self.assert_ok(self.stage.spawn(["curl", "-sSf", "--unix-socket", self.socket,
                                                "http://localhost/metrics"]).finish()).stdout
        audit = self.stage.audit()
        ends = [line for line in audit if line["kind"] == "end"]
        uses = [line for line in audit if line["kind"] == "credential"]
        for line in ('sallyport_sessions{state="running"} 1', 'sallyport_sessions{state="ended"} 1',
                     f'sallyport_decisions_total{{decision="allowed",reason="none"}} {len(ends)}',
                     'sallyport_decisions_total{decision="refused",reason="repo_not_granted"} 1',
                     f'sallyport_requests_ended_total{{reason="none"}} {len(ends)}',
                     f'sallyport_credential_uses_total{{reason="none"}} {len(uses)}',
                     f'sallyport_body_bytes_total{{direction="down"}} {sum(line["bytes_out"] for line in ends)}',
                     f'sallyport_request_duration_seconds_count {len(ends)}', "sallyport_audit_lost_total 0"):
            self.assertIn(line + "\n", text)
        self.assertNotIn("forge.test", text)

    def test_sessions_outlive_gate_and_vault(self):
        self.new("agent")
        for program in ("sallyport-gate", "sallyport-vault"):
            before = self.daemon.pids_of(program)
            os.kill(before[0], signal.SIGKILL)
            self.daemon.wait_for(lambda: self.daemon.pids_of(program) not in ([], before), f"another {program}")
            self.assert_ok(self.exec("agent", "rm -rf widget; until git clone -q https://forge.test/acme/widget; do :; done"))

    def test_they_end_in_order_with_the_daemon(self):
        self.new("agent")
        running = self.stage.spawn(self.argv("exec", "agent", "--", "sleep", "1000"))
        self.daemon.wait_for(lambda: self.status("agent")["commands"] == 1, "the command")
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.finish().code, 0)
        self.assertEqual(running.finish().code, EXIT_SIGNAL_BASE + signal.SIGTERM)
        self.assertEqual([line["detail"] for line in self.stage.audit() if line["kind"] == "session_end"], ["stopped"])

    def test_they_die_with_the_daemon_and_another_begins_anew(self):
        self.new("agent")
        running = self.stage.spawn(self.argv("exec", "agent", "--", "sleep", "1000"))
        self.daemon.wait_for(lambda: self.status("agent")["commands"] == 1, "the command")
        self.daemon.process.kill()
        outcome = running.finish()
        self.assertEqual(outcome.code, EXIT_SALLYPORT_FAILED)
        self.assert_shows(outcome, "the daemon ended")
        self.daemon.finish()
        self.daemon = self.start_daemon()
        self.assertEqual(self.sessions(), [])
        self.assertEqual(self.new("agent"), "agent")

    def test_commits_of_a_private_clone_come_back(self):
        git = ["setpriv", "--reuid", str(self.stage.sandbox_uid), "--regid", str(self.stage.sandbox_uid), "--clear-groups",
               "git", "-C", self.stage.work] if os.getuid() == 0 else ["git", "-C", self.stage.work]
        for arguments in (["init", "-q", "-b", "main"], ["add", "."],
                          ["-c", "user.name=T", "-c", "user.email=t@t", "commit", "-q", "-m", "first"]):
            subprocess.run([*git, *arguments], check=True, env={"PATH": harness.PATH, "HOME": "/nonexistent"})
        self.new("agent", "--private-git")
        self.assert_ok(self.exec("agent", "git commit -q --allow-empty -m inside", *harness.AUTHOR))
        self.assert_shows(self.assert_ok(self.sallyport("stop", "agent")), "refs/sallyport/")
        refs = subprocess.run([*git, "for-each-ref", "--format=%(subject)", "refs/sallyport/"], capture_output=True, text=True,
                              env={"PATH": harness.PATH, "HOME": "/nonexistent"}, check=True)
        self.assertIn("inside", refs.stdout)


    def test_commits_that_had_no_time_to_come_back_are_kept(self):
        self.test_commits_of_a_private_clone_come_back()
        self.assert_ok(self.sallyport("start", "agent", "--quiet"))
        # Git waits for a writer of this one, until it is ended.
        self.assert_ok(self.exec("agent", "git commit -q --allow-empty -m late\nrm -f .git/packed-refs\nmkfifo .git/packed-refs",
                                 *harness.AUTHOR))
        self.daemon.process.send_signal(signal.SIGTERM)
        self.daemon.wait_for(lambda: self.daemon.pids_of("git"), "git")
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.finish().code, 0)
        self.assertEqual([path.name[:5] for path in (self.state / "clones").iterdir()], ["kept-"])


class OfOthers(Daemon):
    """At the daemon of a whole host."""

    flavour = Flavour.AS_ROOT

    def setUp(self):
        if os.getuid() != 0:
            self.skipTest("needs root")
        super().setUp()

    def start_daemon(self):
        return super().start_daemon("--group", "users")

    def open_the_stage(self):
        """Their home is closed, and the daemon's socket lies in root's."""
        for folder in (self.stage.home, self.stage.runtime):
            folder.chmod(0o711)
        self.theirs = self.stage.folder("theirs", harness.TEST_UID, 0o700)
        self.others = self.stage.folder("others", harness.TEST_UID + 1, 0o700)
        self.stage.folder("others/open", harness.TEST_UID + 1, 0o755)

    def give_credential(self, *users):
        text = self.stage.config.read_text()
        self.stage.config.write_text(text.replace('token" }', f'token" }}\nusers = {list(users)}'))

    def run_as_operator(self, argv):
        operator = {"user": harness.TEST_UID, "group": grp.getgrnam("users").gr_gid, "extra_groups": [THEIR_TEAM]}
        environment = self.stage.environment(HOME=str(self.theirs), XDG_CONFIG_HOME=str(self.theirs / "config"),
                                             XDG_STATE_HOME=str(self.theirs / "state"))
        done = subprocess.run([str(each) for each in argv], cwd=self.stage.work, capture_output=True, check=False,
                              **operator, env=environment, timeout=harness.RUN_TIMEOUT_SECONDS)
        return Outcome(done.returncode, done.stdout, done.stderr, [])

    def as_operator(self, command, *rest):
        return self.run_as_operator(self.argv(command, *rest))

    def ask(self, **fields):
        """What the daemon itself says to a new session of theirs, whatever `sallyport` would have made of it."""
        body = {"workspace": str(self.stage.work), "home": str(self.theirs), "trust": str(self.theirs / "trust")} | fields
        argv = ["curl", "-s", "--max-time", harness.RUN_TIMEOUT_SECONDS, "--unix-socket", self.socket,
                "-H", "Content-Type: application/json", "-d", json.dumps(body), "http://localhost/v1/sessions"]
        return self.assert_ok(self.run_as_operator(argv)).stdout

    def test_an_operators_session_has_the_operators_rights(self):
        self.open_the_stage()
        self.give_credential(harness.TEST_UID)
        for name, group in (("teams", THEIR_TEAM), ("roots", 0)):
            os.chown(self.stage.put(name, name, 0o640), 0, group)
        self.assert_ok(self.as_operator("new", "agent"))
        self.assertEqual(self.status("agent")["owner"], harness.TEST_UID)
        done = self.as_operator("exec", "agent", *harness.AUTHOR, "--", "sh", "-ec",
                                "id -u; id -g; git clone -q https://forge.test/acme/widget; cd widget\n"
                                "git commit -q --allow-empty -m theirs; git push -q origin HEAD:theirs; env")
        self.assert_ok(done)
        self.assertEqual(done.stdout.split()[:2], [str(harness.TEST_UID), str(grp.getgrnam("users").gr_gid)])
        self.assertNotIn(self.stage.token, done.text)
        self.assertIn("theirs", self.forge.repo_git("acme/widget", "log", "-1", "--format=%s", "theirs"))
        self.assertEqual((self.stage.work / "widget").stat().st_uid, harness.TEST_UID)
        self.assertEqual(self.as_operator("exec", "agent", "--", "cat", "teams").stdout, "teams")
        self.assertNotEqual(self.as_operator("exec", "agent", "--", "cat", "roots").code, 0)
        # What they may not read, the log among it, is not theirs by way of the daemon either.
        self.assertNotEqual(self.run_as_operator(["cat", self.stage.audit_file]).code, 0)
        for verb in ("stop", "start", "destroy"):
            self.assert_ok(self.as_operator(verb, "agent"))
        self.assertEqual(self.sessions(), [])

    def test_an_operators_private_clone_is_the_operators(self):
        self.open_the_stage()
        self.give_credential(harness.TEST_UID)
        git = ["git", "-c", "user.name=T", "-c", "user.email=t@test", "-C", self.stage.work]
        self.assert_ok(self.run_as_operator([*git, "init", "-q"]))
        self.assert_ok(self.run_as_operator([*git, "commit", "-q", "--allow-empty", "-m", "first"]))
        self.assert_ok(self.as_operator("new", "agent", "--private-git"))
        self.assert_ok(self.as_operator("exec", "agent", *harness.AUTHOR, "--",
                                        "git", "commit", "-q", "--allow-empty", "-m", "inside"))
        self.assert_ok(self.as_operator("destroy", "agent"))
        self.daemon.wait_for(lambda: list((self.state / "clones").iterdir()) == [], "the clone's end")
        names = self.run_as_operator([*git, "log", "--glob=refs/sallyport/*", "-1", "--format=%s"])
        self.assertEqual(names.stdout, "inside\n")

    def test_an_operator_gets_nothing_that_the_operator_cannot_open(self):
        self.open_the_stage()
        self.give_credential(harness.TEST_UID)
        self.stage.write(self.stage.root / "policy", "version = 1\nsecret = 1\n", 0, 0o600)
        self.stage.folder("roots", 0, 0o700)
        link = self.theirs / "link"
        link.symlink_to(self.stage.root / "others/open")
        for fields in ({"workspace": str(self.stage.root / "others")},
                       {"workspace": str(self.stage.root / "others/open")},
                       {"workspace": str(link)},
                       {"mounts": [str(self.stage.root / "roots") + ":ro"]},
                       {"mounts": [str(link)]},
                       {"policy": str(self.stage.root / "policy")}):
            with self.subTest(fields):
                said = self.ask(**fields)
                self.assertIn("Permission denied", said)
                self.assertNotIn("secret", said)
        for fields in ({"mounts": ["/root"]}, {"mounts": ["/etc/shadow:ro"]}, {"home": "/root", "mounts": ["/root"]}):
            with self.subTest(fields):
                self.assertIn('"error"', self.ask(**fields))
        self.assertEqual(self.sessions(), [])

    def test_an_operator_uses_the_credentials_that_are_given(self):
        self.open_the_stage()
        self.assertIn("the credential 'forge' is not given to you", self.ask())
        self.give_credential("root", harness.TEST_UID + 1)
        self.assertIn("is not given to you", self.ask(git=["forge.test/acme/widget"]))
        self.stage.write_policy("version = 1\n")
        self.assert_ok(self.as_operator("new", "without"))
        self.assert_ok(self.as_operator("destroy", "without"))

    def test_an_operator_sees_and_ends_others_sessions_and_runs_nothing_in_them(self):
        self.open_the_stage()
        self.new("agent")
        self.assertIn("agent", self.assert_ok(self.as_operator("list")).stdout)
        refused = self.assert_failed(self.as_operator("exec", "agent", "--", "id"))
        self.assert_shows(refused, "is another user's")
        self.assert_ok(self.as_operator("destroy", "agent"))
        self.assertEqual(self.sessions(), [])


if __name__ == "__main__":
    harness.main()
