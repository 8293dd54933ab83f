#!/usr/bin/python3
"""`sallyport doctor`: what it says of a host that is well, and of one that is not."""

import json
import os
import shutil

import harness
from harness import SALLYPORT, E2E, in_both_flavours

CHECKS = ["programs", "namespaces", "doors", "bubblewrap", "file watches", "limits", "cgroups", "authorities",
          "a whole session", "audit log", "operator's file", "policy here", "daemon", "container engine"]


@in_both_flavours
class Doctor(E2E):
    def doctor(self, *options, program=SALLYPORT, before=(), **popen):
        """(exit code, {name: its finding})"""
        outcome = self.stage.spawn([*before, program, "doctor", "--json", "--socket", self.stage.runtime / "s/none", *options],
                                   **popen).finish()
        self.assertEqual(outcome.stderr, "")
        answer = json.loads(outcome.stdout)
        self.assertEqual(answer["works"], outcome.code == 0)
        self.assertEqual([each["name"] for each in answer["checks"]], CHECKS)
        return outcome.code, {each["name"]: each for each in answer["checks"]}

    def states(self, found):
        return {name: each["state"] for name, each in found.items() if name not in ("container engine", "limits", "cgroups")}

    def assert_only(self, found, state, *names):
        self.assertEqual({name for name, each in found.items() if each["in_the_way"]}, set(names), found)
        for name in names:
            self.assertEqual(found[name]["state"], state, found[name])

    def test_a_host_that_is_well(self):
        code, found = self.doctor()
        self.assertEqual(code, 0, found)
        self.assertEqual(self.states(found), {name: "ok" for name in self.states(found)} | {"daemon": "missing"}, found)
        text = self.assert_ok(self.stage.cli("doctor"))
        lines = text.stdout.splitlines()
        self.assertEqual(lines[-1], "`sallyport run` works here.")
        self.assertEqual([line[9:28].strip() for line in lines[:-1] if not line.startswith(" ")], CHECKS)
        self.assertEqual([path for path in self.stage.tmp.iterdir()], [])

    def test_without_policy_and_operators_file_it_works_all_the_same(self):
        self.stage.policy.unlink()
        self.stage.config.unlink()
        code, found = self.doctor()
        self.assertEqual(code, 0, found)
        self.assertEqual((found["operator's file"]["state"], found["policy here"]["state"]), ("missing", "missing"))

    def test_files_that_are_wrong_are_told(self):
        self.stage.config.chmod(0o644)
        code, found = self.doctor()
        self.assertEqual(code, 1)
        self.assert_only(found, "broken", "operator's file", "policy here")
        self.assertIn("chmod 600", found["operator's file"]["detail"])
        self.stage.config.chmod(0o600)

        self.stage.write_policy("version = 1\n[[git]]\nrepo = 7\n")
        code, found = self.doctor()
        self.assert_only(found, "broken", "policy here")
        self.assertIn("sallyport.toml:3", found["policy here"]["detail"])

        self.stage.write_policy(harness.WIDGET_PUSH)
        self.stage.write_config(self.forge.address, approve="")
        code, found = self.doctor()
        self.assert_only(found, "broken", "policy here")
        self.assertIn("sallyport policy trust", found["policy here"]["detail"])

    def test_a_program_that_is_not_there(self):
        for program in ("sallyport-netns", "sallyport-init", "sallyport-gate", "sallyport-vault", "sallyportd"):
            with self.subTest(program):
                copy = programs_without(self.stage, program)
                code, found = self.doctor(program=copy / "sallyport")
                self.assertEqual((code, found["programs"]["state"]), (1, "missing"), found)
                self.assertIn(program, found["programs"]["detail"])
                if program != "sallyportd":
                    self.assertEqual(found["a whole session"]["state"], "broken", found)
                shutil.rmtree(copy)

    def test_user_namespaces_that_are_forbidden(self):
        if self.stage.runner_uid == 0:
            self.skipTest("root of a namespace is not the host's root")
        code, found = self.doctor(before=("unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c",
                                          'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all '
                                          '--ambient-caps=-all "$0" "$@"'))
        self.assertEqual(code, 1)
        self.assert_only(found, "broken", "namespaces", "doors", "bubblewrap", "a whole session")
        self.assertIn("sysctl -w user.max_user_namespaces=15000", found["namespaces"]["detail"])

    def test_an_audit_log_that_cannot_be_written(self):
        folder = self.stage.folder("home/state/sallyport", self.stage.runner_uid, 0o755)
        code, found = self.doctor()
        self.assert_only(found, "broken", "audit log")
        self.assertIn(f"chmod 700 {folder}", found["audit log"]["detail"])

    def test_few_processes_are_told(self):
        code, found = self.doctor(before=("prlimit", "--nofile=512"))
        self.assertEqual((found["limits"]["state"], found["limits"]["detail"]), ("broken", "only 512 open files are allowed"))


class DoctorOfRoot(E2E):
    flavour = harness.Flavour.AS_ROOT

    def test_a_workspace_of_roots_is_in_the_way(self):
        outcome = self.stage.spawn([SALLYPORT, "doctor"], cwd=self.stage.home).finish()
        self.assertEqual(outcome.code, 1)
        self.assert_shows(outcome, "broken   policy here", "this workspace belongs to root")
        self.assert_shows(outcome, "ok       a whole session")


def programs_without(stage, without):
    """The programs, but for one."""
    copy = stage.root / "programs"
    copy.mkdir()
    for program in harness.BIN_DIR.iterdir():
        if program.name.startswith("sallyport") and program.name != without:
            shutil.copy(program, copy / program.name)
            os.chown(copy / program.name, stage.runner_uid, stage.runner_uid)
    return copy


if __name__ == "__main__":
    harness.main()
