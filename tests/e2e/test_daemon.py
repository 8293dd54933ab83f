#!/usr/bin/python3
"""`sallyportd` by itself: the gateway of a host, as its users and its service manager see it."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import harness
import processes

DAEMON = harness.SALLYPORT.parent / "sallyportd"
SERVICES = ["sallyport-gate", "sallyport-vault"]
LIMIT = 60
ROOTLESS_UID = 12345


class Daemon(unittest.TestCase):
    uid = 0

    def setUp(self):
        self.assertEqual(os.getuid(), 0, "these tests need root")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="daemon-"))
        self.runtime = self.folder / "run"
        self.runtime.mkdir(mode=0o700)
        for path in (self.folder, self.runtime):
            os.chown(path, self.uid, self.uid)
        self.socket = self.runtime / "sallyport/control.sock"
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(self.folder / "notify"))
        os.chown(self.folder / "notify", self.uid, self.uid)
        self.manager.settimeout(LIMIT)
        self.started = []

    def tearDown(self):
        for daemon in self.started:
            if daemon.poll() is None:
                daemon.kill()
            daemon.communicate()
        self.manager.close()
        shutil.rmtree(self.folder)

    def start(self, *options):
        environment = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": str(self.folder / "notify"),
                       "XDG_RUNTIME_DIR": str(self.runtime)}
        options = ("--state", self.folder / "state", *options)
        if self.uid == 0:
            options = ("--socket", self.socket, *options)
        daemon = subprocess.Popen([DAEMON, *options], env=environment, user=self.uid, group=self.uid, extra_groups=[],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(daemon)
        return daemon

    def start_and_wait(self):
        daemon = self.start()
        self.assertIn("READY=1", self.heard(daemon))
        return daemon

    def heard(self, daemon):
        try:
            return self.manager.recv(4096).decode()
        except TimeoutError:
            daemon.kill()
            self.fail(f"nothing was heard: {daemon.communicate()}")

    def ask(self, path, user=None):
        """(status, body) by stock curl."""
        user = self.uid if user is None else user
        run = subprocess.run(["curl", "-s", "--max-time", str(LIMIT), "-w", "\n%{http_code}", "--unix-socket", self.socket,
                              f"http://localhost{path}"],
                             capture_output=True, text=True, user=user, group=user, extra_groups=[])
        body, _, status = run.stdout.rpartition("\n")
        return int(status), body

    def services(self, daemon):
        return {processes.executable(pid): pid for pid in processes.children(daemon.pid)}

    def wait_for(self, condition, what):
        deadline = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)

    def test_says_how_it_is(self):
        daemon = self.start_and_wait()
        self.assertEqual(sorted(self.services(daemon)), SERVICES)
        self.assertEqual(self.ask("/healthz"), (200, "ok\n"))
        self.assertEqual(self.ask("/readyz"), (200, "ok\n"))
        self.assertIn('"api":"v1"', self.ask("/v1/version")[1])
        for service in SERVICES:
            self.assertIn(f'sallyport_process_up{{process="{service}"}} 1', self.ask("/metrics")[1])
        status, body = self.ask("/v1/nothing")
        self.assertEqual(status, 404, body)
        self.assertEqual((self.socket.parent.stat().st_mode & 0o777, self.socket.stat().st_mode & 0o777), (0o700, 0o600))

    def test_is_not_ready_without_its_audit_log(self):
        self.start_and_wait()
        log = self.folder / "state/audit.jsonl"
        log.symlink_to("/dev/null")
        status, body = self.ask("/readyz")
        self.assertEqual(status, 503, body)
        self.assertIn("audit.jsonl cannot be written", body)
        self.assertEqual(self.ask("/healthz"), (200, "ok\n"))
        log.unlink()
        self.assertEqual(self.ask("/readyz"), (200, "ok\n"))

    def test_ends_as_it_is_told_and_leaves_nothing(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon = self.start_and_wait()
            services = self.services(daemon)
            daemon.send_signal(number)
            self.assertEqual(daemon.communicate(timeout=LIMIT), ("", ""))
            self.assertEqual(daemon.returncode, 0)
            self.assertIn("STOPPING=1", self.heard(daemon))
            self.assertFalse(self.socket.exists())
            self.assertEqual([pid for pid in services.values() if processes.executable(pid) in SERVICES], [])

    def test_starts_what_dies_again(self):
        daemon = self.start_and_wait()
        for service in SERVICES:
            before = self.services(daemon)[service]
            os.kill(before, signal.SIGKILL)
            self.wait_for(lambda: f'deaths_total{{process="{service}"}} 1' in self.ask("/metrics")[1], f"{service} is missed")
            self.wait_for(lambda: self.ask("/readyz")[0] == 200, f"{service} runs again")
            self.assertNotEqual(self.services(daemon)[service], before)

    def test_takes_its_place_back_when_it_was_killed(self):
        killed = self.start_and_wait()
        services = self.services(killed)
        killed.kill()
        killed.communicate()
        self.wait_for(lambda: not any(processes.executable(pid) in SERVICES for pid in services.values()), "they go with it")
        self.assertTrue(self.socket.exists())
        self.start_and_wait()
        self.assertEqual(self.ask("/healthz")[0], 200)

    def test_a_second_one_goes_no_further(self):
        first = self.start_and_wait()
        second = self.start()
        _, error = second.communicate(timeout=LIMIT)
        self.assertEqual(second.returncode, 1, error)
        self.assertIn(str(first.pid), error)
        self.assertEqual(self.ask("/healthz")[0], 200)

    def test_another_user_does_not_get_in(self):
        daemon = self.start_and_wait()
        self.assertEqual(self.ask("/healthz", user=54321), (0, ""))
        # Nor when the modes would let it.
        self.folder.chmod(0o755)
        self.runtime.chmod(0o755)
        self.socket.parent.chmod(0o755)
        self.socket.chmod(0o666)
        self.assertEqual(self.ask("/healthz", user=54321), (0, ""))
        daemon.send_signal(signal.SIGTERM)
        _, error = daemon.communicate(timeout=LIMIT)
        self.assertIn("was refused at the control socket", error)

    def test_wrong_usage_is_told(self):
        for options in (["--sockets"], ["--socket"], ["--socket", "relative"], ["--group", "no-such-group"]):
            run = subprocess.run([DAEMON, *options], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
            self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        run = subprocess.run([DAEMON, "--help"], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("--group", run.stdout)


class DaemonRootless(Daemon):
    uid = ROOTLESS_UID


if __name__ == "__main__":
    harness.main()
