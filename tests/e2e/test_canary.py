#!/usr/bin/python3
"""The token is nowhere but in the vault: searched for in memory, environments, arguments and files, during and
after transfers, from outside with root's eyes and from inside with the sandbox's.
"""

import os
import pathlib
import subprocess
import unittest

import canary
import harness
import processes
from harness import AUTHOR, E2E, TEST_UID, git_rule, in_both_flavours, policy

VAULT = "sallyport-vault"
GATE = "sallyport-gate"
# The command line, the warden and the gate.
OURS = ("sallyport", "sallyportd", GATE)


@in_both_flavours
class Canary(E2E):
    def setUp(self):
        super().setUp()
        self.stage.write_policy(policy(git_rule("forge.test/acme/*", "push")))

    def assert_clean(self, running, expect):
        """No process of the run but the vault holds the token; `expect` must be among those looked at."""
        looked_at = []
        for pid in running.tree():
            name = processes.executable(pid)
            if name == VAULT:
                continue
            try:
                found = canary.search_process(pid, self.stage.token)
            except (FileNotFoundError, ProcessLookupError):
                continue
            looked_at.append(name)
            self.assertEqual(found, [], f"in {processes.describe(pid)}")
        for name in expect:
            self.assertIn(name, looked_at)

    @unittest.skipIf(os.getuid() != 0, "reading other processes' memory needs root")
    def test_no_memory_but_the_vaults_holds_it_during_a_clone(self):
        self.forge.add_widget("acme/slow", blob_bytes=2 << 20)
        self.forge.close_gate()
        running = self.stage.start("git clone -q https://forge.test/acme/slow s; checkpoint cloned")
        running.wait_for(lambda: list(self.stage.work.glob("s/.git/objects/pack/tmp_pack_*")), "the middle of a clone")
        self.assert_clean(running, [*OURS, "git-remote-http"])
        self.assertEqual(len(running.pids_of(VAULT)), 1)
        self.forge.open_gate()
        running.wait_for_checkpoint("cloned")
        self.assert_clean(running, OURS)
        running.pass_checkpoint("cloned")
        self.assert_ok(running.finish())

    @unittest.skipIf(os.getuid() != 0, "reading other processes' memory needs root")
    def test_no_memory_but_the_vaults_holds_it_during_a_push(self):
        self.forge.add_widget("acme/slow", blob_bytes=1024)
        running = self.stage.start(
            "git clone -q https://forge.test/acme/slow s; cd s; head -c 3000000 /dev/urandom >x; git add x\n"
            "git commit -q -m x; checkpoint committed; git push -q origin HEAD:agent; checkpoint pushed", AUTHOR)
        self.forge.open_gate()
        running.wait_for_checkpoint("committed")
        self.forge.close_gate()
        requests = len(self.forge.log())
        running.pass_checkpoint("committed")
        # Discovery and probe are in the log; the push itself is not, since it has not ended.
        running.wait_for(lambda: len(self.forge.log()) >= requests + 1 and self.receive_pack_runs(),
                         "the middle of a push")
        self.assert_clean(running, [*OURS, "git-remote-http"])
        self.forge.open_gate()
        running.wait_for_checkpoint("pushed")
        self.assert_clean(running, OURS)
        running.pass_checkpoint("pushed")
        self.assert_ok(running.finish())

    def receive_pack_runs(self):
        ours = processes.descendants(os.getpid())
        return any(b"receive-pack" in _read(f"/proc/{pid}/cmdline") and processes.uid_of(pid) == self.forge.uid
                   for pid in ours)

    def test_nothing_that_the_sandbox_can_read_holds_it(self):
        flipped = bytes(b ^ 0xFF for b in self.stage.token.encode()).hex()
        self.stage.put("canary.py", (harness.HERE / "canary.py").read_text(), 0o644)
        self.stage.put("search_inside.py", (harness.HERE / "search_inside.py").read_text())
        outcome = self.run_inside("git clone -q https://forge.test/acme/widget; cd widget; git commit -q --allow-empty "
                                  "-m x; git push -q origin HEAD:agent; cd ..\n"
                                  f"/usr/bin/python3 search_inside.py {flipped}", AUTHOR)
        self.assert_ok(outcome)
        self.assertNotIn("FOUND", outcome.stdout)
        self.assertRegex(outcome.stdout, r"files [1-9]")

    def test_the_search_inside_finds_what_is_there(self):
        flipped = bytes(b ^ 0xFF for b in self.stage.token.encode()).hex()
        self.stage.put("canary.py", (harness.HERE / "canary.py").read_text(), 0o644)
        self.stage.put("search_inside.py", (harness.HERE / "search_inside.py").read_text())
        self.stage.put("leak.txt", "x" + self.stage.token)
        outcome = self.run_inside(["/usr/bin/python3", "search_inside.py", flipped])
        self.assert_failed(outcome)
        self.assert_shows(outcome, "FOUND ", "leak.txt: raw")

    def test_no_file_of_the_run_holds_it_but_the_operators(self):
        outcome = self.run_inside("git clone -q https://forge.test/acme/widget", ("--verbose",))
        self.assert_ok(outcome)
        needles = canary.forms(self.stage.token)
        self.assertEqual(canary.find_in(outcome.text.encode(), needles), [])
        for path in self.stage.root.rglob("*"):
            if self.forge.root in path.parents or path == self.stage.token_file or not path.is_file():
                continue
            self.assertEqual(canary.find_in(path.read_bytes(), needles), [], path)

    def test_the_same_user_can_neither_read_nor_trace_gate_and_vault(self):
        running = self.stage.start("git clone -q https://forge.test/acme/widget; checkpoint cloned")
        running.wait_for_checkpoint("cloned")
        for program in (VAULT, GATE):
            (pid,) = running.pids_of(program) if os.getuid() == 0 else self.pids_by_name(running, program)
            done = subprocess.run(["/usr/bin/python3", "-c", TRACE, str(pid)], text=True, capture_output=True,
                                  cwd="/", check=False, **self.as_sandbox_user())
            self.assertEqual((done.returncode, done.stdout.split()), (0, ["refused"] * 5), done.stdout + done.stderr)
        running.pass_checkpoint("cloned")
        self.assert_ok(running.finish())

    def pids_by_name(self, running, program):
        # /proc/PID/exe of a process that is not dumpable cannot be read; its name of 15 characters can.
        return [pid for pid in running.tree() if _read(f"/proc/{pid}/comm").strip() == program[:15].encode()]

    @staticmethod
    def as_sandbox_user():
        return {} if os.getuid() else {"user": TEST_UID, "group": TEST_UID, "extra_groups": []}


TRACE = r'''
import ctypes, os, sys
pid = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what):
    try:
        what()
        print("open")
    except OSError:
        print("refused")
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
def vm_read():
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_void_p * 2)(0x400000, 8)
    check(libc.process_vm_readv(pid, vector, 1, remote, 1, 0))
PTRACE_SEIZE = 0x4206
attempt(lambda: open(f"/proc/{pid}/mem", "rb"))
attempt(lambda: open(f"/proc/{pid}/environ", "rb").read())
attempt(lambda: check(libc.ptrace(PTRACE_SEIZE, pid, 0, 0)))
attempt(vm_read)
attempt(lambda: os.listdir(f"/proc/{pid}/fd"))
'''


def _read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    harness.main()
