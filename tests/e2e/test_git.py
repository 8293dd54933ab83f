#!/usr/bin/python3
"""Stock git through the gateway: every kind of transfer, each compared with what the forge holds."""

import os
import subprocess

import harness
from harness import AUTHOR, E2E, git_rule, in_both_flavours, policy

TRACE = ("--env", "GIT_TRACE_PACKET=1")


@in_both_flavours
class Git(E2E):
    def setUp(self):
        super().setUp()
        self.stage.write_policy(policy(git_rule("forge.test/acme/*", "push")))

    def inside(self, script, options=()):
        return self.assert_ok(self.run_inside(script, (*AUTHOR, *options)))

    def here(self, *command):
        """git outside, as the owner of the workspace; its output."""
        owner = {} if os.getuid() else {"user": harness.TEST_UID, "group": harness.TEST_UID, "extra_groups": []}
        return subprocess.run(["git", *command], cwd=self.stage.work, check=True, capture_output=True, text=True,
                              env={"PATH": harness.PATH, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"},
                              **owner).stdout.strip()

    def head(self, folder):
        return self.here("-C", folder, "rev-parse", "HEAD")

    def assert_sound(self, repo):
        self.forge.repo_git(repo, "fsck", "--strict")

    def assert_only_our_credential(self):
        for line in self.forge.log():
            self.assertTrue(line.authorized, line)
            self.assertEqual(line.cookie, "", line)
            self.assertEqual(line.host, "forge.test", line)

    # --- fetching ---

    def test_clones_a_granted_repository(self):
        outcome = self.inside("git clone https://forge.test/acme/widget")
        self.assertEqual(self.head("widget"), self.forge.refs("acme/widget")["refs/heads/main"])
        self.assertEqual(self.here("-C", "widget", "status", "--porcelain"), "")
        self.assertEqual(self.here("-C", "widget", "config", "remote.origin.url"), "https://forge.test/acme/widget")
        self.assert_only_our_credential()
        begun, ended = outcome.events("begin"), outcome.events("end")
        self.assertEqual(len(begun), 3, str(outcome))
        self.assertEqual({line["request"] for line in begun}, {line["request"] for line in ended})
        for line in begun:
            self.assertEqual((line["host"], line["port"], line["credential"]), ("forge.test", 443, "forge"))
            self.assertIn("sallyport.toml:3", line["rule"])
        self.assertEqual([line["method"] for line in begun], ["GET", "POST", "POST"])
        self.assertEqual({(line["status"], line["reason"]) for line in ended}, {(200, "none")})
        self.assertEqual(outcome.events("refused"), [])

    def test_git_is_the_one_that_is_to_be_tested(self):
        version = subprocess.run([f"{harness.OTHER_GIT}/bin/git" if harness.OTHER_GIT else "git", "version"],
                                 check=True, capture_output=True, text=True).stdout
        self.assertIn(version, self.inside("git version").stdout)

    def test_the_suffix_git_and_a_trailing_slash_are_the_same_repository(self):
        self.inside("git clone https://forge.test/acme/widget.git a; git clone https://forge.test/acme/widget/ b")
        self.assertEqual(self.head("a"), self.head("b"))

    def test_fetches_what_is_new(self):
        self.inside("git clone -q https://forge.test/acme/widget")
        tree = self.forge.repo_git("acme/widget", "rev-parse", "main^{tree}")
        new = self.forge.repo_git("acme/widget", "commit-tree", tree, "-p", "main", "-m", "new")
        self.forge.repo_git("acme/widget", "update-ref", "refs/heads/main", new)
        self.inside("git -C widget pull -q --ff-only")
        self.assertEqual(self.head("widget"), new)

    def test_shallow_and_then_deep(self):
        self.inside("git clone -q --depth 1 https://forge.test/acme/widget")
        self.assertEqual(self.here("-C", "widget", "rev-list", "--count", "HEAD"), "1")
        self.inside("git -C widget fetch -q --unshallow")
        self.assertEqual(self.here("-C", "widget", "rev-list", "--count", "HEAD"), "3")

    def test_a_partial_clone_fetches_blobs_when_they_are_needed(self):
        self.inside("git clone -q --filter=blob:none --no-checkout https://forge.test/acme/widget")
        missing = self.here("-C", "widget", "rev-list", "--objects", "--all", "--missing=print").count("?")
        self.assertGreater(missing, 0)
        requests = len(self.forge.log())
        self.inside("git -C widget cat-file blob HEAD:data.bin >data.bin")
        self.assertEqual((self.stage.work / "data.bin").stat().st_size, 300 * 1024)
        self.assertGreater(len(self.forge.log()), requests)

    def test_every_protocol_version_is_really_used(self):
        for version, header, shown in ((2, "version=2", "version 2"), (1, "version=1", "version 1"), (0, "", None)):
            with self.subTest(version):
                before = len(self.forge.log())
                outcome = self.inside(f"git -c protocol.version={version} clone https://forge.test/acme/widget v{version}",
                                      TRACE)
                sent = {line.git_protocol for line in self.forge.log()[before:]}
                self.assertEqual(sent, {header})
                for text in ("version 1", "version 2"):
                    self.assertEqual(f"< {text}" in outcome.text, text == shown, str(outcome))
                self.assertEqual(self.head(f"v{version}"), self.forge.refs("acme/widget")["refs/heads/main"])

    def test_a_gzipped_request_arrives_as_it_was_sent(self):
        self.forge.add_refs(700, "acme/tags")
        for version in (0, 2):
            with self.subTest(version):
                self.inside(f"git -c protocol.version={version} clone -q https://forge.test/acme/tags t{version}")
                self.assertEqual(self.forge.log()[-1].content_encoding, "gzip")
                self.assertEqual(len(self.here("-C", f"t{version}", "tag").splitlines()), 700)

    def test_clones_thirty_thousand_refs(self):
        self.forge.add_refs(30000)
        for version in (0, 2):
            with self.subTest(version):
                self.inside(f"git -c protocol.version={version} clone -q https://forge.test/acme/refs r{version}")
                self.assertEqual(len(self.here("-C", f"r{version}", "tag").splitlines()), 30000)

    def test_clones_a_repository_with_sha256_names_and_pushes_to_it(self):
        path = self.forge.add_repo("acme/modern")
        (path / "config").write_text((path / "config").read_text().replace("formatversion = 0", "formatversion = 1")
                                     + "[extensions]\n\tobjectformat = sha256\n")
        outcome = self.inside("git init -q --object-format=sha256 m; cd m; git commit -q --allow-empty -m first\n"
                              "git push -q https://forge.test/acme/modern HEAD:refs/heads/main\n"
                              "cd ..; git clone -q https://forge.test/acme/modern n")
        self.assertEqual(self.head("n"), self.forge.refs("acme/modern")["refs/heads/main"])
        self.assertEqual(self.refs_pushed(outcome)["refs/heads/main"], ("0" * 64, self.head("n")))

    def test_http2_wishes_are_met_with_http1(self):
        self.inside("git -c http.version=HTTP/2 clone -q https://forge.test/acme/widget; cd widget\n"
                    "head -c 3000000 /dev/urandom >new.bin; git add .; git commit -q -m new\n"
                    "git -c http.version=HTTP/2 push -q origin HEAD:refs/heads/agent")
        self.assertEqual(self.head("widget"), self.forge.refs("acme/widget")["refs/heads/agent"])

    def test_several_clones_at_once(self):
        self.inside("for i in 1 2 3 4 5 6; do git clone -q https://forge.test/acme/widget w$i & all=\"$all $!\"; done\n"
                    "for pid in $all; do wait $pid; done")
        main = self.forge.refs("acme/widget")["refs/heads/main"]
        self.assertEqual([self.head(f"w{i}") for i in range(1, 7)], [main] * 6)
        self.assert_only_our_credential()

    def test_a_clone_killed_in_the_middle_is_repeated(self):
        self.forge.add_widget("acme/slow", blob_bytes=2 << 20)
        self.forge.close_gate()
        running = self.stage.start("git clone -q https://forge.test/acme/slow s & pid=$!\n"
                                   "until ls s/.git/objects/pack/tmp_pack_* >/dev/null 2>&1; do sleep 0.05; done\n"
                                   "kill -9 $pid; wait $pid || true; rm -rf s\n"
                                   "checkpoint killed\n"
                                   "git clone -q https://forge.test/acme/slow s")
        running.wait_for_checkpoint("killed")
        self.forge.open_gate()
        running.pass_checkpoint("killed")
        self.assert_ok(running.finish())
        self.assertEqual(self.head("s"), self.forge.refs("acme/slow")["refs/heads/main"])

    def test_an_empty_repository_is_cloned_and_filled(self):
        outcome = self.inside("git clone https://forge.test/acme/empty; cd empty; git commit -q --allow-empty -m first\n"
                              "git push -q origin HEAD:refs/heads/main")
        self.assert_shows(outcome, "cloned an empty repository")
        self.assertEqual(self.head("empty"), self.forge.refs("acme/empty")["refs/heads/main"])

    # --- pushing ---

    def test_pushes_and_the_audit_names_every_ref(self):
        old = self.forge.refs("acme/widget")
        outcome = self.inside("git clone -q https://forge.test/acme/widget; cd widget\n"
                              "git commit -q --allow-empty -m one; git tag v2\n"
                              "git push -q --atomic origin HEAD:main HEAD:refs/heads/agent/x v2 :next")
        new, refs = self.head("widget"), self.forge.refs("acme/widget")
        self.assertEqual(refs["refs/heads/main"], new)
        self.assertEqual(refs["refs/heads/agent/x"], new)
        self.assertEqual(refs["refs/tags/v2"], new)
        self.assertNotIn("refs/heads/next", refs)
        zero = "0" * 40
        self.assertEqual(self.refs_pushed(outcome),
                         {"refs/heads/main": (old["refs/heads/main"], new), "refs/heads/agent/x": (zero, new),
                          "refs/tags/v2": (zero, new), "refs/heads/next": (old["refs/heads/next"], zero)})
        self.assert_sound("acme/widget")
        self.assert_only_our_credential()

    def test_a_push_above_the_post_buffer_is_chunked(self):
        self.inside("git clone -q https://forge.test/acme/widget; cd widget\n"
                    "head -c 3000000 /dev/urandom >new.bin; git add .; git commit -q -m new\n"
                    "git push -q origin HEAD:refs/heads/agent")
        self.assertEqual(self.head("widget"), self.forge.refs("acme/widget")["refs/heads/agent"])
        pushed = self.forge.log()[-1]
        self.assertEqual((pushed.transfer_encoding, pushed.content_length), ("chunked", ""))
        self.assert_sound("acme/widget")

    def test_a_push_of_a_thousand_refs(self):
        outcome = self.inside("git clone -q https://forge.test/acme/empty e; cd e; git commit -q --allow-empty -m c\n"
                              "i=0; while [ $i -lt 1000 ]; do echo \"create refs/tags/t$i HEAD\"; i=$((i+1)); done"
                              " | git update-ref --stdin\n"
                              "git push -q origin --tags")
        self.assertEqual(len(self.forge.refs("acme/empty")), 1000)
        self.assertEqual(len(self.refs_pushed(outcome)), 1000)

    def test_what_upstream_refuses_is_shown_as_upstream_says_it(self):
        self.forge.repo_git("acme/widget", "config", "receive.denyNonFastForwards", "true")
        before = self.forge.refs("acme/widget")
        outcome = self.run_inside("git clone -q https://forge.test/acme/widget; cd widget\n"
                                  "git reset -q --hard HEAD~1; git commit -q --allow-empty -m other\n"
                                  "git push -f origin HEAD:main", AUTHOR)
        self.assert_failed(outcome)
        self.assert_shows(outcome, "remote: error: denying non-fast-forward", "[remote rejected]")
        self.assertEqual(self.forge.refs("acme/widget"), before)

    def test_a_push_with_expect_100_continue(self):
        self.inside("git clone -q https://forge.test/acme/widget; cd widget\n"
                    "head -c 3000000 /dev/urandom >new.bin; git add .; git commit -q -m new\n"
                    "git -c http.extraHeader='Expect: 100-continue' push -q origin HEAD:refs/heads/agent")
        self.assertEqual(self.head("widget"), self.forge.refs("acme/widget")["refs/heads/agent"])
        self.assertEqual({line.expect for line in self.forge.log()}, {""})

    def test_credentials_and_cookies_of_the_client_are_removed(self):
        self.inside("git -c http.extraHeader='Authorization: Basic Zm9vOmJhcg==' -c http.extraHeader='Cookie: a=b' "
                    "clone -q https://forge.test/acme/widget\n"
                    "git clone -q https://somebody:something@forge.test/acme/widget x")
        self.assert_only_our_credential()


if __name__ == "__main__":
    harness.main()
