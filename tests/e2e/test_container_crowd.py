#!/usr/bin/python3
"""Fifty sandboxes in containers on one gateway at once, each with a repository of its own."""

import os

import containers
import harness
from harness import git_rule, policy

CROWD = int(os.environ.get("SALLYPORT_TEST_CROWD", "50"))
# A user's connections to the daemon are limited.
AT_ONCE = 8


def setUpModule():
    containers.share_an_engine()


class Crowd(containers.Containers):
    def at_once(self, argvs):
        """The outcome of each command line, in their order."""
        outcomes = []
        for first in range(0, len(argvs), AT_ONCE):
            batch = [self.stage.spawn(argv) for argv in argvs[first:first + AT_ONCE]]
            outcomes += [running.finish() for running in batch]
        return outcomes

    def test_each_has_its_own_repository_and_no_other(self):
        for number in range(CROWD):
            self.forge.add_widget(f"acme/own{number}", blob_bytes=1000)
            work = self.stage.folder(f"work{number}", self.stage.sandbox_uid, 0o755)
            self.stage.write(work / "sallyport.toml", policy(git_rule(f"forge.test/acme/own{number}")), self.stage.sandbox_uid)
        for outcome in self.at_once([self.argv("new", f"s{number}", "--quiet", "--image", containers.IMAGE, "--memory", "64MiB",
                                               "--workspace", self.stage.root / f"work{number}") for number in range(CROWD)]):
            self.assert_ok(outcome)
        sessions = {each["name"]: each["id"] for each in self.sessions()}
        self.assertEqual(len(sessions), CROWD)
        self.assertEqual(len(self.engine.containers()), 2 * CROWD)

        def clone(number, of):
            return self.argv("exec", f"s{number}", "--", "git", "clone", "-q", f"https://forge.test/acme/own{of}")
        for number, outcome in enumerate(self.at_once([clone(number, number) for number in range(CROWD)])):
            self.assert_ok(outcome)
            self.assertTrue((self.stage.root / f"work{number}/own{number}/.git").is_dir())
        before = self.stage.traffic()
        for outcome in self.at_once([clone(number, (number + 1) % CROWD) for number in range(CROWD)]):
            self.assert_shows(self.assert_failed(outcome), "The policy does not grant this repository.")
        self.assertEqual(self.stage.traffic(), before)

        lines = self.stage.audit()
        refused = [line for line in lines if line["kind"] == "refused"]
        self.assertEqual({line["reason"] for line in refused}, {"repo_not_granted"})
        self.assertEqual(sorted(line["session"] for line in refused), sorted(sessions.values()))
        self.account_for(refused)
        for number in range(CROWD):
            begun = [line for line in lines if line["kind"] == "begin" and line["session"] == sessions[f"s{number}"]]
            self.assertTrue(begun)
            self.assertEqual({line["path"].split("/")[2] for line in begun}, {f"own{number}"})
        for outcome in self.at_once([self.argv("destroy", f"s{number}") for number in range(CROWD)]):
            self.assert_ok(outcome)
        self.assert_nothing_is_left()


if __name__ == "__main__":
    harness.main()
