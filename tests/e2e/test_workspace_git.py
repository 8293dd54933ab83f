#!/usr/bin/python3
"""What git finds in a workspace and in a sandbox: remotes that say ssh, configurations that hold a credential,
private clones."""

import harness
from harness import AUTHOR, E2E, git_rule, in_both_flavours, policy

SSH_SPELLINGS = ("git@forge.test:acme/widget.git", "git@forge.test:/acme/widget", "ssh://git@forge.test/acme/widget",
                 "ssh://git@forge.test:22/acme/widget.git", "git://forge.test/acme/widget",
                 "git://forge.test:9418/acme/widget")


@in_both_flavours
class SshRemotes(E2E):
    """Remotes written for ssh or git:// work for what is granted, and say plainly why not for the rest."""

    def setUp(self):
        super().setUp()
        self.stage.write_policy(policy(git_rule("forge.test/acme/*", "push")))

    def inside(self, script, options=()):
        return self.assert_ok(self.run_inside(script, (*AUTHOR, *options)))

    def test_every_spelling_clones_and_pushes(self):
        script = "".join(f"git clone -q {url} w{i}; cd w{i}; git commit -q --allow-empty -m {i}\n"
                         f"git push -q origin HEAD:refs/heads/agent/{i}; git fetch -q; cd ..\n"
                         for i, url in enumerate(SSH_SPELLINGS))
        outcome = self.inside(script + "git -C w0 config remote.origin.url")
        refs = self.forge.refs("acme/widget")
        for i in range(len(SSH_SPELLINGS)):
            self.assertIn(f"refs/heads/agent/{i}", refs)
        self.assertEqual(outcome.stdout, SSH_SPELLINGS[0] + "\n")  # as it was written
        self.assertEqual(outcome.events("refused"), [])

    def test_submodules_with_ssh_and_with_relative_urls(self):
        self.inside("git clone -q git@forge.test:acme/widget; cd widget\n"
                    "git submodule --quiet add git@forge.test:acme/other.git a\n"
                    "git submodule --quiet add ssh://git@forge.test/acme/other b\n"
                    "git submodule --quiet add ../other c\n"
                    "git commit -q -m modules; git push -q origin HEAD:main\n"
                    "cd ..; git clone -q --recurse-submodules git@forge.test:acme/widget again\n"
                    "for i in a b c; do test -e again/$i/README; git -C again/$i push -q origin HEAD:refs/heads/by-$i; done")
        for name in "abc":
            self.assertIn(f"refs/heads/by-{name}", self.forge.refs("acme/other"))

    def test_a_workspace_that_rewrites_https_to_ssh_does_not_break_it(self):
        for key in ("insteadOf", "pushInsteadOf"):
            with self.subTest(key):
                self.inside(f"git init -q {key}; cd {key}; git config url.git@forge.test:.{key} https://forge.test/\n"
                            f"git config --add url.ssh://git@forge.test/acme/.{key} https://forge.test/acme/\n"
                            f"git config --add url.ssh://git@forge.test/acme/.{key} git@forge.test:acme/\n"
                            "git remote add origin https://forge.test/acme/widget\n"
                            "git pull -q origin main; git commit -q --allow-empty -m x\n"
                            f"git push -q origin HEAD:refs/heads/{key}\n"
                            f"git push -q git@forge.test:acme/widget HEAD:refs/heads/{key}-2")
                self.assertIn(f"refs/heads/{key}-2", self.forge.refs("acme/widget"))

    def test_another_host_gets_a_sentence_with_the_rule_to_add(self):
        before = self.stage.traffic()
        for url, told in (("git@other.test:acme/x.git", 'repo = "other.test/acme/x"'),
                          ("ssh://git@other.test:2222/acme/x", 'repo = "other.test/acme/x"'),
                          ("someone@forge.test:acme/widget", "use https://forge.test/acme/widget\n"),
                          ("git://other.test/acme/x", 'repo = "other.test/OWNER/REPO"')):
            with self.subTest(url):
                outcome = self.assert_failed(self.run_inside(["git", "clone", url]))
                self.assert_shows(outcome, "out of this sandbox", told, 'access = "fetch"')
        outcome = self.assert_failed(self.run_inside(
            "git init -q p; cd p; git commit -q --allow-empty -m x; git push git@other.test:acme/x HEAD", AUTHOR))
        self.assert_shows(outcome, 'access = "push"')
        self.assertEqual(self.stage.traffic(), before)

    def test_another_repository_of_a_granted_host_is_refused_by_the_gate(self):
        self.assert_refused("repo_not_granted", ["git", "clone", "git@forge.test:strange/widget"],
                            shows=["remote: sallyport: The policy does not grant this repository."])

    def test_a_host_name_full_of_control_characters_reaches_no_terminal(self):
        outcome = self.assert_failed(self.run_inside(
            ["git", "-c", "protocol.allow=always", "clone", "git@x\x1b]0;owned\x07.test:acme/x"]))
        self.assertNotIn("sallyport: there is no ssh out of this sandbox, so not to 'git@x\x1b", outcome.text)
        self.assert_shows(outcome, "'git@x\\x1b]0;owned\\x07.test'")


if __name__ == "__main__":
    harness.main()
