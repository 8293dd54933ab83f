#!/usr/bin/python3
"""What git finds in a workspace and in a sandbox: remotes that say ssh, configurations that hold a credential,
private clones."""

import os
import subprocess

import canary
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


# Each form in which git keeps a credential: the file below the workspace, its text, and what is said of it.
SECRET = "hidden-" + os.urandom(12).hex()
REMOTE = f'[remote "up"]\n\turl = https://user:{SECRET}@forge.test/acme/widget\n'
CREDENTIALS = {
    "password": (".git/config", REMOTE, ":2: remote.up.url = https://***@forge.test/acme/widget"),
    "user name alone": (".git/config", f'[remote "up"]\n\tpushurl = https://{SECRET}@forge.test/acme/widget\n',
                        "git remote set-url --push up https://forge.test/acme/widget"),
    "header": (".git/config", f'[http "https://forge.test/"]\n\textraHeader = Authorization: Basic {SECRET}\n',
               ":2: http.https://forge.test/.extraheader = ***"),
    "rewrite": (".git/config", f'[url "https://{SECRET}@forge.test/"]\n\tinsteadOf = https://forge.test/\n',
                ":2: url.***.insteadof"),
    "proxy": (".git/config", f"[http]\n\tproxy = http://user:{SECRET}@proxy.test:3128\n", ":2: http.proxy = "),
    "helper": (".git/config", f"[credential]\n\thelper = \"!echo password={SECRET};:\"\n", ":2: credential.helper"),
    "store": (".git/config", "[credential]\n\thelper = store --file passwords\n", ":2: credential.helper names a file"),
    "cookies": (".git/config", "[http]\n\tcookieFile = passwords\n", ":2: http.cookiefile names a file"),
    "include": (".git/config", "[include]\n\tpath = ../included\n", "included:2: remote.up.url"),
    "comment": (".git/config", f"# https://user:{SECRET}@forge.test/\n", ":1: https://***@forge.test/"),
    "worktree configuration": (".git/config.worktree", REMOTE, ".git/config.worktree:2: "),
    "submodule's configuration": (".git/modules/a/config", REMOTE, ".git/modules/a/config:2: "),
    ".gitmodules": (".gitmodules", f'[submodule "a"]\n\turl = https://x:{SECRET}@forge.test/a/b\n', ".gitmodules:2: "),
    ".git-credentials": (".git-credentials", f"https://x:{SECRET}@forge.test\n", ".git-credentials: git's store"),
    "FETCH_HEAD": (".git/FETCH_HEAD", f"{'0' * 40}\t\thttps://x:{SECRET}@forge.test/a/b\n", ".git/FETCH_HEAD:1: "),
    "reflog": (".git/logs/HEAD", f"{'0' * 40} {'1' * 40} A <a> 1 +0\tclone: from https://{SECRET}@forge.test/a\n",
               ".git/logs/HEAD:1: "),
}


@in_both_flavours
class CredentialsInTheWorkspace(E2E):
    """A repository's configuration that holds a credential stops the start: it is named, and never shown."""

    def setUp(self):
        super().setUp()
        self.user = {"user": harness.TEST_UID, "group": harness.TEST_UID, "extra_groups": []} if not os.getuid() else {}
        subprocess.run(["git", "init", "-q"], cwd=self.stage.work, check=True, env={"PATH": harness.PATH}, **self.user)
        for name in ("refs", "objects"):
            self.folder(f".git/modules/a/{name}")
        self.stage.put(".git/modules/a/HEAD", "ref: refs/heads/main\n")
        self.folder(".git/logs")
        self.stage.put("passwords", SECRET)
        self.stage.put("included", REMOTE)
        self.config = (self.stage.work / ".git/config").read_text()

    def folder(self, name):
        subprocess.run(["mkdir", "-p", str(self.stage.work / name)], check=True, **self.user)

    def assert_stopped(self, command, options=(), shows=()):
        before = self.stage.traffic()
        outcome = self.run_inside(command, options)
        self.assertEqual(outcome.code, harness.EXIT_SALLYPORT_FAILED, str(outcome))
        self.assert_shows(outcome, "git's configuration here holds credentials", "Nothing was started.", *shows)
        self.assertEqual(canary.find_in(outcome.text.encode(), canary.forms(SECRET)), [])
        self.assertEqual(outcome.audit, [])
        self.assertEqual(self.stage.traffic(), before)
        self.assertFalse((self.stage.work / "ran").exists(), "something was started")

    def test_each_form_stops_the_start(self):
        for name, (file, text, told) in CREDENTIALS.items():
            with self.subTest(name):
                self.stage.put(file, text)
                self.assert_stopped("touch ran", shows=[told])
                if file == ".git/config":
                    self.stage.put(file, self.config)
                else:
                    (self.stage.work / file).unlink()
        self.assert_ok(self.run_inside("touch ran"))

    def test_in_another_mount_too_even_read_only(self):
        other = self.stage.folder("other", self.stage.sandbox_uid, 0o755)
        self.stage.write(other / ".git-credentials", f"https://x:{SECRET}@forge.test", self.stage.sandbox_uid)
        self.assert_stopped("touch ran", ("--mount", f"{other}:ro"), shows=["other/.git-credentials"])

    def test_the_remedy_that_is_named_is_one(self):
        self.stage.put(".git/config", self.config + REMOTE)
        self.assert_stopped("touch ran", shows=["git remote set-url up https://forge.test/acme/widget\n"])
        subprocess.run(["git", "remote", "set-url", "up", "https://forge.test/acme/widget"], cwd=self.stage.work,
                       env={"PATH": harness.PATH}, check=True, **self.user)
        self.assert_ok(self.run_inside("git fetch -q up"))

    def test_ssh_users_and_ordinary_urls_start(self):
        self.stage.put(".git/config", self.config + '[remote "a"]\n\turl = ssh://git@forge.test/acme/widget\n'
                       '[remote "b"]\n\turl = git@forge.test:acme/widget\n[credential]\n\thelper = store\n')
        self.assert_ok(self.run_inside("git fetch -q a; git fetch -q b"))


if __name__ == "__main__":
    harness.main()
