#!/usr/bin/python3
"""A policy file is never a way in: what an agent or a cloned repository wrote grants nothing without consent."""

import json
import os
import shutil

import harness
from harness import AUTHOR, E2E, EXIT_SALLYPORT_FAILED, EXIT_USAGE, WIDGET_PUSH, git_rule, in_both_flavours, policy

CLONE = "git clone -q https://forge.test/acme/widget"
PLANTED = policy(git_rule("forge.test/acme/*", "push"))
MISSING = "the policy uses credentials and needs your consent"


class Trust(E2E):
    """Nothing is approved in advance here."""

    def setUp(self):
        super().setUp()
        self.stage.write_config(self.forge.address, approve="")
        self.store = self.stage.state / "sallyport/trust"

    def trust(self, *argv):
        return self.assert_ok(self.stage.cli("policy", "trust", "--yes", *argv))

    def assert_stops(self, *shows, command=CLONE, options=(), **popen):
        """The start stops for want of consent: nothing ran, nothing was sent, and the command to run is named."""
        before = self.stage.traffic()
        outcome = self.run_inside(f"{command}; touch ran", options, **popen)
        self.assertEqual(outcome.code, EXIT_SALLYPORT_FAILED, str(outcome))
        for fragment in (MISSING, "sallyport policy trust ", *shows):
            self.assertIn(fragment, outcome.stderr, str(outcome))
        self.assertEqual(outcome.stdout, "")
        self.assertEqual(outcome.audit, [], "a session was begun")
        self.assertFalse((self.stage.work / "ran").exists())
        self.assertEqual(self.stage.traffic(), before)
        return outcome


@in_both_flavours
class Attacks(Trust):
    def test_an_agent_plants_a_policy_where_none_was(self):
        self.stage.policy.unlink()
        self.stage.put("planted", PLANTED)
        self.assert_ok(self.run_inside("cp planted sallyport.toml"))
        self.assert_stops("was never trusted", "push to forge.test/acme/* with the credential 'forge' (line 3)")

    def test_an_agent_cannot_change_a_trusted_policy_and_a_changed_one_stops_with_the_diff(self):
        self.trust()
        self.stage.put("planted", PLANTED)
        outcome = self.run_inside("""
            for try in 'cp planted sallyport.toml' 'rm -f sallyport.toml' 'mv sallyport.toml away' \\
                       'mv planted sallyport.toml' 'ln -sf planted sallyport.toml'; do
              if $try; then echo "$try: this worked"; exit 3; fi
            done; """ + CLONE)
        self.assert_ok(outcome)
        self.assertEqual(self.stage.policy.read_text(), WIDGET_PUSH)
        # By whatever way it came to be changed.
        self.stage.write_policy(PLANTED)
        self.assert_stops("has changed since you trusted it", '-repo = "forge.test/acme/widget"',
                          '+repo = "forge.test/acme/*"')

    def test_an_agent_puts_another_folder_in_the_place_of_the_policys(self):
        folder = self.stage.folder("work/policies", self.stage.sandbox_uid, 0o755)
        mine = self.stage.write(folder / "mine.toml", WIDGET_PUSH, self.stage.sandbox_uid)
        self.trust(mine)
        self.stage.policy.unlink()
        self.stage.put("planted", PLANTED)
        self.assert_failed(self.run_inside("mv policies away", ("--policy", mine)))
        self.assertEqual(mine.read_text(), WIDGET_PUSH)
        # Where this policy is not the run's, nothing holds its folder.
        self.assert_ok(self.run_inside("mv policies away; mkdir policies; cp planted policies/mine.toml; rm planted"))
        self.assertEqual(mine.read_text(), PLANTED)
        self.assert_stops("has changed since you trusted it", '+repo = "forge.test/acme/*"', options=("--policy", mine))
        # A link to the trusted file, moved away, is as much of another place; and to a folder of the agent's too.
        shutil.rmtree(folder)
        folder.symlink_to("away")
        self.assert_stops("away/mine.toml was never trusted", options=("--policy", mine))

    def test_an_agent_plants_a_link_as_the_policy(self):
        self.stage.policy.unlink()
        self.stage.put("planted.toml", PLANTED)
        self.assert_ok(self.run_inside("ln -s planted.toml sallyport.toml"))
        self.assert_stops("planted.toml was never trusted")
        self.trust(self.stage.work / "planted.toml")
        outcome = self.run_inside(CLONE)
        self.assertEqual(outcome.code, EXIT_SALLYPORT_FAILED, str(outcome))
        self.assertIn("is a symbolic link", outcome.stderr)
        self.assertEqual(self.forge.traffic(), (0, 0))

    def test_a_cloned_repository_ships_a_policy(self):
        self.trust()
        shipped = self.stage.put("shipped", WIDGET_PUSH)
        self.assert_ok(self.run_inside(CLONE + "; cp shipped widget/sallyport.toml", AUTHOR))
        # The very bytes that are trusted elsewhere.
        self.assertEqual((self.stage.work / "widget/sallyport.toml").read_bytes(), shipped.read_bytes())
        self.assert_stops("widget/sallyport.toml was never trusted", cwd=self.stage.work / "widget")

    def test_a_policy_that_speaks_to_the_terminal_or_holds_a_token(self):
        self.trust()
        token = "ghp_" + "x" * 36
        self.stage.write_policy(WIDGET_PUSH.encode() + "# \x1b]0;owned\x07 \u202e {token}\r\n".replace(
            "{token}", token).encode())
        # TOML forbids control characters in comments; the problem's text has none either.
        outcome = self.run_inside(CLONE)
        self.assertEqual(outcome.code, EXIT_SALLYPORT_FAILED, str(outcome))
        self.assertNotIn("\x1b", outcome.stderr)
        self.stage.write_policy(WIDGET_PUSH.encode() + f"# \u202e \x7f {token}\r\n".replace("\x7f", "").encode())
        outcome = self.assert_stops("\\xe2\\x80\\xae", "ghp_***", "\\x0d")
        self.assertNotIn(token, outcome.stderr)
        self.assertTrue(all(c == "\n" or " " <= c <= "~" for c in outcome.stderr), repr(outcome.stderr))

    def test_a_huge_policy(self):
        self.trust()
        self.stage.write_policy(WIDGET_PUSH + "# x\n" * 200_000)
        outcome = self.assert_stops("more lines are not shown")
        self.assertLess(len(outcome.stderr), 20_000)
        self.stage.write_policy(WIDGET_PUSH + "# x\n" * 2_100_000)
        self.assertIn("larger than 8 MiB", self.run_inside(CLONE).stderr)

    def test_a_trust_store_that_somebody_else_could_have_written(self):
        def link():
            os.rename(self.store, self.stage.home / "planted")
            self.store.symlink_to(self.stage.home / "planted")

        def entry_link():
            (entry,) = self.store.iterdir()
            os.rename(entry, self.stage.home / "entry")
            entry.symlink_to(self.stage.home / "entry")

        plants = [(lambda: self.store.chmod(0o770), "chmod 700"), (lambda: next(self.store.iterdir()).chmod(0o606), "chmod 600"),
                  (link, "symbolic link"), (entry_link, "symbolic link")]
        if os.getuid() == 0:
            plants.append((lambda: os.chown(self.store, 1, 1), "belongs to uid 1" if self.stage.runner_uid == 0
                           else str(self.store)))
        for plant, shows in plants:
            with self.subTest(shows):
                if self.store.is_symlink():
                    self.store.unlink()
                shutil.rmtree(self.store, ignore_errors=True)
                self.trust()
                plant()
                outcome = self.run_inside(CLONE)
                self.assertEqual(outcome.code, EXIT_SALLYPORT_FAILED, str(outcome))
                self.assertIn(shows, outcome.stderr)
                self.assertEqual(outcome.audit, [])
        self.assertEqual(self.forge.traffic(), (0, 0))

    def test_the_trust_store_goes_into_no_sandbox(self):
        self.trust()
        for mount in (self.store, self.store.parent, next(self.store.iterdir())):
            with self.subTest(mount):
                outcome = self.run_inside("true", ("--mount", f"{mount}:ro"))
                self.assertEqual(outcome.code, EXIT_SALLYPORT_FAILED, str(outcome))
                self.assertIn("Sallyport's own folder", outcome.stderr)
        self.assert_ok(self.run_inside(f"if ls {self.store} || ls {self.store.parent}; then exit 3; fi"))


@in_both_flavours
class Consent(Trust):
    def test_is_given_once_for_the_bytes_and_the_place(self):
        self.trust()
        self.assert_ok(self.run_inside(CLONE))
        self.stage.write_policy(WIDGET_PUSH)  # touched, and the same
        self.assert_ok(self.run_inside("git ls-remote -q https://forge.test/acme/widget"))
        self.assertEqual(self.store.stat().st_mode & 0o777, 0o700)
        self.assertEqual([f.stat().st_mode & 0o777 for f in self.store.iterdir()], [0o600])
        self.assert_ok(self.stage.cli("policy", "trust", "--revoke"))
        self.assert_stops("was never trusted")

    def test_is_not_needed_without_credentials_or_for_the_users_own_words(self):
        self.stage.write_policy(policy(git_rule("forge.test/acme/other", "fetch", credential=None)))
        self.stage.write_config(self.forge.address, 'credential = "forge"\n', approve="")
        self.assert_ok(self.run_inside(CLONE, ("--git", "forge.test/acme/widget")))

    def test_is_not_needed_for_what_the_operator_approved(self):
        approve = '\n[[approve]]\nrepo = "forge.test/acme/w*"\naccess = "{}"\ncredential = "forge"\n'
        self.stage.write_config(self.forge.address, approve=approve.format("push"))
        self.assert_ok(self.run_inside(CLONE))
        self.stage.write_config(self.forge.address, approve=approve.format("fetch"))
        self.assert_stops("was never trusted")

    def test_is_asked_for_at_a_terminal_before_anything_is_started(self):
        def answer(word):
            left = [word]
            return lambda shown: left.pop() if b"[y/N]" in shown and left else b""

        refused = self.stage.run_in_terminal(CLONE, typed=answer(b"\n"))
        self.assertEqual(refused.code, EXIT_SALLYPORT_FAILED, str(refused))
        self.assertIn("nothing was started", refused.stdout)
        self.assertEqual((refused.audit, self.forge.traffic()), ([], (0, 0)))
        outcome = self.stage.run_in_terminal(CLONE, typed=answer(b"y\n"))
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assert_ok(self.run_inside("git ls-remote -q https://forge.test/acme/widget"))

    def test_what_was_typed_before_the_question_is_no_answer_to_it(self):
        # Or what a terminal sent in answer to what some program printed.
        left = [b"\n", b"begin\ny\n"]

        def typed(shown):
            ready = len(left) == 2 or (left and b"[y/N]" in shown)
            return left.pop() if ready else b""

        outcome = self.stage.run_in_terminal(
            ["bash", "-c", f"echo ready; read begin; {harness.SALLYPORT} run -- true"], program=(), typed=typed)
        self.assertEqual(outcome.code, EXIT_SALLYPORT_FAILED, str(outcome))
        self.assertIn("nothing was trusted", outcome.stdout)
        self.assertFalse(self.store.exists())


class Command(Trust):
    def test_shows_what_would_be_trusted_and_refuses_without_a_terminal(self):
        outcome = self.stage.cli("policy", "trust")
        self.assertEqual(outcome.code, 1, str(outcome))
        self.assert_shows(outcome, "fetch from and push to forge.test/acme/widget with the credential 'forge' (line 3)",
                          f"sallyport policy trust {self.stage.policy} --yes")
        self.assertFalse(self.store.exists())

    def test_trusts_nothing_that_does_not_lint(self):
        self.stage.write_policy(WIDGET_PUSH + "acess = 1\n")
        outcome = self.stage.cli("policy", "trust", "--yes")
        self.assertEqual(outcome.code, 1, str(outcome))
        self.assertIn("sallyport.toml:7:1", outcome.stderr)
        self.assertFalse(self.store.exists())

    def test_lists_and_revokes(self):
        outcome = self.trust("--json")
        entry = json.loads(outcome.stdout)
        self.assertEqual((entry["path"], entry["state"]), (str(self.stage.policy), "given"))
        listed = self.assert_ok(self.stage.cli("policy", "trust", "--list", "--json"))
        self.assertEqual(json.loads(listed.stdout), [{"path": entry["path"], "sha256": entry["sha256"]}])
        self.assertEqual(self.assert_ok(self.stage.cli("policy", "trust", "--list")).stdout,
                         f"{entry['sha256']}  {entry['path']}\n")
        self.stage.policy.unlink()  # gone, and still to be revoked
        for revoked, code in ((True, 0), (False, 1)):
            outcome = self.stage.cli("policy", "trust", "--revoke", self.stage.policy, "--json")
            self.assertEqual(outcome.code, code, str(outcome))
            self.assertEqual(json.loads(outcome.stdout), {"path": entry["path"], "revoked": revoked})
        self.assertEqual(json.loads(self.stage.cli("policy", "trust", "--list", "--json").stdout), [])
        self.assertEqual(self.stage.cli("policy", "trust", "--list", "--yes").code, EXIT_USAGE)

    def test_check_and_explain_say_that_a_run_would_stop(self):
        for argv in (("check",), ("explain", "https://forge.test/acme/widget")):
            with self.subTest(argv[0]):
                command = f"sallyport policy trust {self.stage.policy}"
                outcome = self.assert_ok(self.stage.cli("policy", *argv))
                self.assertIn(f"a run would stop: {self.stage.policy} uses credentials and was never trusted; run: {command}",
                              outcome.stderr)
                answer = json.loads(self.stage.cli("policy", *argv, "--json").stdout)
                self.assertEqual(answer["consent"], {"state": "never", "command": command})
        self.trust()
        answer = json.loads(self.stage.cli("policy", "check", "--json").stdout)
        self.assertEqual(answer, {"ok": True, "problems": [], "consent": {"state": "given", "command": None}})
        self.assertEqual(self.stage.cli("policy", "check").stderr, "")
        self.stage.write_policy(PLANTED)
        self.assertIn("has changed since you trusted it", self.stage.cli("policy", "check").stderr)

    def test_a_run_without_a_terminal_leaves_standard_input_alone(self):
        reader, writer = os.pipe()
        os.write(writer, b"y\ny\n")
        os.close(writer)
        self.assert_stops(stdin=reader)
        self.assertEqual(os.read(reader, 100), b"y\ny\n")
        os.close(reader)


if __name__ == "__main__":
    harness.main()
