#!/usr/bin/python3
"""What git finds in a workspace and in a sandbox: remotes that say ssh, configurations that hold a credential,
private clones."""

import os
import pathlib
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


class Repository(E2E):
    """A repository of the user's in the workspace, with one commit and a change that is not committed."""

    IDENTITY = ["-c", "user.name=U", "-c", "user.email=u@forge.test", "-c", "init.defaultBranch=main"]

    def setUp(self):
        super().setUp()
        self.user = {"user": harness.TEST_UID, "group": harness.TEST_UID, "extra_groups": []} if not os.getuid() else {}
        self.clones = pathlib.Path("/var/lib/sallyport/clones") if self.stage.runner_uid == 0 else \
            self.stage.state / "sallyport/clones"
        # Others may work with clones of theirs on this machine.
        self.clones_before = set(self.clones.glob("*"))
        self.make_repository()
        self.marker = self.stage.folder("outside", self.stage.sandbox_uid, 0o777) / "marker"

    def make_repository(self, *options):
        self.git("init", "-q", *options)
        self.stage.put("file", "one\n")
        self.git("add", "file")
        self.git("commit", "-q", "-m", "first")
        self.git("remote", "add", "origin", "https://forge.test/acme/widget")
        self.stage.put("file", "one\nchanged\n")

    def git(self, *command):
        done = subprocess.run(["git", *self.IDENTITY, *command], cwd=self.stage.work, capture_output=True, text=True,
                              env={"PATH": harness.PATH, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"},
                              check=False, **self.user)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def refs(self):
        lines = self.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
        return dict(line.split(" ", 1)[::-1] for line in lines)

    def came_back(self):
        """{name behind refs/sallyport/ID/: id}"""
        return {name.split("/", 3)[3]: oid for name, oid in self.refs().items() if name.startswith("refs/sallyport/")}

    def files(self):
        """Every file of the workspace but the objects and what lies under the one prefix."""
        result = {}
        for folder, folders, names in os.walk(self.stage.work):
            if folder == str(self.stage.work / ".git"):
                folders.remove("objects")
            if folder == str(self.stage.work / ".git/refs"):
                folders[:] = [name for name in folders if name != "sallyport"]
            for name in names:
                path = os.path.join(folder, name)
                result[path] = (os.lstat(path).st_mode, pathlib.Path(path).read_bytes())
        return result

    def run_private(self, script):
        before = self.files()
        outcome = self.run_inside(script, (*AUTHOR, "--private-git"))
        self.assertEqual(self.files(), before, str(outcome))
        self.assertFalse(self.marker.exists(), "something ran outside")
        return outcome

    def left(self):
        return set(self.clones.glob("*")) - self.clones_before


@in_both_flavours
class PrivateGit(Repository):
    """--private-git: the sandbox has a clone, the commits come back under refs/sallyport/, and nothing else."""

    def test_commits_come_back_and_nothing_else_changes(self):
        main = self.refs()["refs/heads/main"]
        outcome = self.assert_ok(self.run_private(
            'test "$(cat file)" = one; test -z "$(git status --porcelain)"; git remote -v\n'
            "echo two >>file; git commit -qam two; git checkout -q -b agent/x; git commit -q --allow-empty -m three\n"
            "git branch same main~1; git config any.thing works\n"
            "git fetch -q origin; git push -q origin HEAD:refs/heads/out"))
        self.assertIn("origin\thttps://forge.test/acme/widget (push)", outcome.stdout)
        back = self.came_back()
        self.assertEqual(sorted(back), ["heads/agent/x", "heads/main"])
        self.assertEqual(self.git("rev-parse", f"{back['heads/agent/x']}~2"), main)
        self.assertEqual(self.refs()["refs/heads/main"], main)
        self.assertEqual(self.forge.refs("acme/widget")["refs/heads/out"], back["heads/agent/x"])
        self.assert_shows(outcome, "came back as refs/sallyport/", "look with: git log -p refs/sallyport/")
        self.git("fsck", "--strict")
        self.assertEqual(self.left(), set())

    def test_what_was_not_committed_comes_back_as_one_commit(self):
        outcome = self.assert_ok(self.run_private("echo more >>file; echo new >untracked"))
        self.assertEqual(list(self.came_back()), ["uncommitted"])
        self.assert_shows(outcome, "/uncommitted")
        oid = self.came_back()["uncommitted"]
        self.assertEqual(self.git("diff", "--name-only", "main", oid), "file\nuntracked")

    def test_a_detached_head_comes_back(self):
        self.assert_ok(self.run_private("git checkout -q --detach; git commit -q --allow-empty -m loose"))
        self.assertEqual(list(self.came_back()), ["HEAD"])

    def test_nothing_done_leaves_nothing(self):
        outcome = self.assert_ok(self.run_private("true"))
        self.assert_shows(outcome, "nothing was committed or changed")
        self.assertEqual(self.came_back(), {})

    def test_the_exit_code_is_the_commands_and_its_commits_come_back(self):
        outcome = self.run_private("git commit -q --allow-empty -m x; exit 7")
        self.assertEqual(outcome.code, 7)
        self.assertEqual(list(self.came_back()), ["heads/main"])

    def test_a_credential_in_the_real_configuration_stays_outside(self):
        self.git("config", "remote.origin.url", f"https://user:{SECRET}@forge.test/acme/widget")
        self.git("config", "http.extraHeader", f"Authorization: {SECRET}")
        outcome = self.assert_ok(self.run_private("cat .git/config; git fetch -q; grep -rs hidden- . /tmp || true"))
        self.assertEqual(canary.find_in(outcome.text.encode(), canary.forms(SECRET)), [])
        self.assertIn("https://forge.test/acme/widget", outcome.stdout)

    def test_sha256_and_a_repository_without_a_commit(self):
        subprocess.run(["rm", "-rf", str(self.stage.work / ".git")], check=True)
        self.git("init", "-q", "--object-format=sha256")
        self.assert_ok(self.run_private("git commit -q --allow-empty -m first"))
        self.assertRegex(self.came_back()["heads/main"], "^[0-9a-f]{64}$")

    def test_hooks_filters_and_fsmonitor_of_the_real_repository_do_not_run(self):
        planted = self.stage.put(".git/planted", f"#!/bin/sh\ntouch {self.marker}\n")
        for key in ("core.fsmonitor", "filter.x.smudge", "filter.x.clean", "uploadpack.packObjectsHook",
                    "core.sshCommand"):
            self.git("config", key, str(planted))
        self.stage.put(".git/info/attributes", "* filter=x\n")
        for hook in ("post-checkout", "reference-transaction", "post-merge", "pre-auto-gc"):
            self.stage.put(f".git/hooks/{hook}", f"#!/bin/sh\ntouch {self.marker}\n")
        outcome = self.run_inside("git commit -q --allow-empty -m x", (*AUTHOR, "--private-git"))
        self.assertFalse(self.marker.exists(), str(outcome))
        for key in ("core.fsmonitor", "filter.x.clean"):
            self.git("config", "--unset", key)
        for hook in (self.stage.work / ".git/hooks").iterdir():
            hook.unlink()
        self.assertEqual(list(self.came_back()), ["heads/main"])

    def test_only_the_top_of_a_repository_can_be_cloned(self):
        plain = self.stage.folder("plain", self.stage.sandbox_uid, 0o755)
        outcome = self.run_inside("true", ("--private-git",), cwd=plain)
        self.assertEqual(outcome.code, harness.EXIT_SALLYPORT_FAILED)
        self.assert_shows(outcome, "--private-git: ", "top folder of a repository")

    def test_what_a_killed_session_left_is_removed_by_the_next_start(self):
        running = self.stage.start("checkpoint here", (*AUTHOR, "--private-git"))
        running.wait_for(lambda: any((path / "work/.at-here").exists() for path in self.left()), "the clone")
        running.kill()
        self.assertTrue(self.left(), "the clone was not there")
        self.assert_ok(self.run_inside("true"))
        self.assertEqual(self.left(), set())


# What a sandbox does to its clone. "$M" is a program outside that makes the marker when it runs, "$S" a repository
# outside. The commit "inside" is made before.
HOSTILE = {
    "programs in the configuration": r"""
        for key in core.fsmonitor core.sshCommand core.pager core.editor uploadpack.packObjectsHook core.gitProxy \
            core.alternateRefsCommand filter.x.clean filter.x.process gpg.program diff.external credential.helper; do
          git config $key "$M"; done
        git config commit.gpgSign true; git config core.hooksPath "$PWD/.git/hooks"; echo '* filter=x' >.gitattributes""",
    "hooks": r"""for hook in pre-commit post-checkout reference-transaction post-index-change pre-push update; do
        mkdir -p .git/hooks; printf '#!/bin/sh\n"%s"\n' "$M" >.git/hooks/$hook; chmod +x .git/hooks/$hook; done""",
    "includes of files outside": r"""printf '[include]\n\tpath = %s/.git/config\n\tpath = /etc/passwd\n' "$S" >>.git/config""",
    "alternates outside": r"""echo "$S/.git/objects" >.git/objects/info/alternates""",
    "a promisor remote": r"""git config extensions.partialClone evil; git config core.repositoryFormatVersion 1
        git config remote.evil.promisor true; git config remote.evil.url "ext::$M"; git config protocol.allow always""",
    "symbolic links as refs": r"""ln -s "$S/.git/refs/heads/main" .git/refs/heads/stolen
        ln -s /etc/passwd .git/refs/heads/passwd""",
    "names that leave the prefix": r"""o=$(git rev-parse HEAD)
        for name in refs/heads/../../../heads/main refs/heads/../main refs/heads/main.lock; do
          echo "$o $name" >>.git/packed-refs; done""",
    "other refs": r"""git update-ref refs/remotes/x/y HEAD; git update-ref refs/sallyport/zz/heads/main HEAD
        git tag evil; git notes add -m x""",
    "names that a shell would run": r"""git branch 'x;touch${IFS}m'; git branch '$(touch${IFS}m)'; git branch -- 'a`b'""",
    "a git folder elsewhere": r"""mv .git .real; echo "gitdir: $S/.git" >.git""",
    "a common folder elsewhere": r"""echo "$S/.git" >.git/commondir""",
    "a work tree elsewhere": r"""git config core.worktree "$S" """,
    "a repository that is none": r"""rm -rf .git; mkdir .git""",
    "locks": r"""touch .git/index.lock .git/HEAD.lock .git/packed-refs.lock .git/config.lock""",
    "more refs than are taken": r"""o=$(git rev-parse HEAD)
        for i in $(seq 2100); do echo "create refs/heads/r$i $o"; done | git update-ref --stdin""",
    "a name that no file can have": r"""git commit-tree -m x HEAD^{tree} >/tmp/o
        echo "$(cat /tmp/o) refs/heads/$(head -c 900 /dev/zero | tr '\0' x)" >>.git/packed-refs""",
    "a tree that is deep": r"""python3 -c "import os
for i in range(300): os.mkdir('d' * 20); os.chdir('d' * 20)"
""",
}
# What may differ when root does it: whose rights the commands have, what can be removed.
AS_ROOT = ("programs in the configuration", "symbolic links as refs", "a repository that is none", "a tree that is deep")


@in_both_flavours
class HostileClone(Repository):
    def test_runs_nothing_outside_and_changes_no_other_ref(self):
        other = self.stage.folder("secret", self.stage.sandbox_uid, 0o755)
        program = self.stage.write(self.stage.root / "program", f"#!/bin/sh\ntouch {self.marker}\n",
                                   self.stage.sandbox_uid, 0o755)
        self.git("-C", str(other), "init", "-q")
        self.git("-C", str(other), "commit", "-q", "--allow-empty", "-m", "secret")
        secret = self.git("-C", str(other), "rev-parse", "HEAD")
        before = self.refs()
        for name, script in HOSTILE.items():
            if self.flavour is harness.Flavour.AS_ROOT and name not in AS_ROOT:
                continue
            with self.subTest(name):
                outcome = self.run_private(f"M={program}; S={other}\ngit commit -q --allow-empty -m inside\n{script}")
                self.assertEqual(outcome.code, 0, str(outcome))
                refs = self.refs()
                new = set(refs) - set(before)
                self.assertEqual({ref: oid for ref, oid in refs.items() if ref not in new}, before)
                for ref in new:
                    self.assertRegex(ref, r"^refs/sallyport/[0-9a-f]{12}/(heads/.+|HEAD|uncommitted)$")
                kept = [path for path in self.left() if path.name.startswith("kept-")]
                self.assertTrue(new or kept, str(outcome))
                self.assertEqual("did not come back" in outcome.text, bool(kept), str(outcome))
                self.assertNotIn("touch${IFS}", outcome.text.split("look with:")[-1] if "look" in outcome.text else "")
                self.assertNotIn(secret, self.git("rev-list", "--all"))
                self.git("fsck", "--strict")
                for ref in new:
                    self.git("update-ref", "-d", ref)
                for path in kept:
                    subprocess.run(["rm", "-rf", str(path)], check=True)
                self.assertEqual(self.left(), set())


if __name__ == "__main__":
    harness.main()
