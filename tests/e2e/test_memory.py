#!/usr/bin/python3
"""Flat memory: gate and vault stay small whatever a transfer's size. Run on a release build.

SALLYPORT_TEST_MIB sets the size of the repository in MiB.
"""

import os
import unittest

import harness
import processes
from harness import AUTHOR, E2E, git_rule, policy

SIZE_MIB = int(os.environ.get("SALLYPORT_TEST_MIB", "200"))
LIMIT_KIB = 64 * 1024


@unittest.skipIf(SIZE_MIB == 0, "switched off")
class FlatMemory(E2E):
    def test_clone_and_push_stay_small(self):
        self.stage.write_policy(policy(git_rule("forge.test/acme/*", "push")))
        self.forge.add_big(SIZE_MIB)
        running = self.stage.start("git clone -q https://forge.test/acme/big b; checkpoint cloned\n"
                                   "cd b; git push -q https://forge.test/acme/empty HEAD:refs/heads/main\n"
                                   "checkpoint pushed", AUTHOR)
        for checkpoint in ("cloned", "pushed"):
            running.wait_for_checkpoint(checkpoint, timeout=1800)
            programs = processes.confined_programs(running.tree())
            self.assertEqual(sorted(programs), sorted(processes.CONFINED))
            for program, pid in programs.items():
                peak = processes.peak_kib(pid)
                print(f"{program}: {peak} KiB at most until {checkpoint}")
                self.assertLess(peak, LIMIT_KIB, f"{program} until {checkpoint}")
            running.pass_checkpoint(checkpoint)
        self.assert_ok(running.finish(timeout=1800))
        self.assertEqual(self.forge.refs("acme/empty")["refs/heads/main"],
                         self.forge.refs("acme/big")["refs/heads/main"])
        size = sum(path.stat().st_size for path in self.forge.path("acme/empty").rglob("*.pack"))
        self.assertGreater(size, SIZE_MIB << 20)


if __name__ == "__main__":
    harness.main()
