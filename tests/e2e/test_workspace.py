#!/usr/bin/python3
"""What a sandbox plants in its workspace does not run when the host's user calls git there afterwards.

Every case plants one thing whose payload writes a marker. The same commands run first in a copy without a guard, where
the payload must fire: else the case proves nothing.
"""

import os
import shutil
import socket
import subprocess

import harness
from harness import AUTHOR, E2E, in_both_flavours

GIT_ENVIRONMENT = {"GIT_AUTHOR_NAME": "U", "GIT_AUTHOR_EMAIL": "u@host.test",
                   "GIT_COMMITTER_NAME": "U", "GIT_COMMITTER_EMAIL": "u@host.test"}

# In all scripts: where the payload is, and what each payload does.
EVIL = r'''
evil="$PWD/evil"
mkdir -p "$evil/hooks"
printf '#!/bin/sh\necho ran >> "%s/marker"\n' "$PWD" > "$evil/payload"
chmod +x "$evil/payload"
cp "$evil/payload" "$evil/hooks/post-index-change"
printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = %s/payload\n' "$evil" > "$evil/config"
'''

# name: (what the host's user had set up, what is tried inside). Each line inside may fail, as in a sandbox it will.
NOTHING = ""
PLANTS = {
    "renamed_git": (NOTHING, "mv .git .git-old; cp -r .git-old .git; cp evil/config .git/config"),
    "removed_git": (NOTHING, "cp -r .git copy; rm -rf .git; mv copy .git; cp evil/config .git/config"),
    "config": (NOTHING, "cp evil/config .git/config"),
    "config_by_rename": (NOTHING, "cp evil/config .git/c; mv -f .git/c .git/config"),
    "config_by_git": (NOTHING, 'git config core.fsmonitor "$evil/payload"'),
    "config_by_parts": (NOTHING, "rm -f .git/config; cp evil/config .git/config"),
    "commondir": (NOTHING, r'''cp -r .git/objects .git/refs evil/; cp .git/HEAD evil/; printf '../evil\n' > .git/commondir'''),
    "commondir_by_rename": (NOTHING, r'''cp -r .git/objects .git/refs evil/; cp .git/HEAD evil/
                               printf '../evil\n' > tmp; mv tmp .git/commondir'''),
    "commondir_by_link": (NOTHING, r'''cp -r .git/objects .git/refs evil/; cp .git/HEAD evil/
                             printf '../evil\n' > tmp; ln -s ../tmp .git/commondir'''),
    "hooks": (NOTHING, "mkdir -p .git/hooks; cp evil/payload .git/hooks/post-index-change"),
    "hooks_folder": (NOTHING, "mv .git/hooks .git/h; cp -r evil/hooks .git/hooks"),
    "config_worktree": (NOTHING, "cp evil/config .git/config.worktree"),
    "include": ('touch team.config; git config include.path ../team.config', "cp evil/config team.config"),
    "hooks_path": ('mkdir githooks; git config core.hooksPath githooks', "cp evil/payload githooks/post-index-change"),
    "module_config": (NOTHING, "cp evil/config .git/modules/sub/config"),
    "module_renamed": (NOTHING, "mv .git/modules .git/m; cp -r .git/m .git/modules; cp evil/config .git/modules/sub/config"),
    "module_commondir": (NOTHING, r'''cp -r .git/modules/sub/objects .git/modules/sub/refs evil/; cp .git/modules/sub/HEAD evil/
                            printf '../../../evil\n' > .git/modules/sub/commondir'''),
    "module_hooks": (NOTHING, "mkdir -p .git/modules/sub/hooks; cp evil/payload .git/modules/sub/hooks/post-index-change"),
    "module_config_worktree": (NOTHING, "cp evil/config .git/modules/sub/config.worktree"),
    "module_pointer": (NOTHING, r'''cp -r .git/modules/sub evil/git; cp evil/config evil/git/config
                          printf 'gitdir: ../evil/git\n' > sub/.git'''),
    "module_nested": (NOTHING, "cp evil/config .git/modules/sub/modules/inner/config"),
    "nested": (NOTHING, r'''git -c core.hooksPath=/dev/null init -q nest
                  git -C nest commit -q --allow-empty -m x; git add nest
                  cp evil/config nest/.git/config'''),
    "top_as_repository": (NOTHING, r'''cp -r .git/objects .git/refs .; cp .git/HEAD .; cp evil/config config
                             printf '\tworktree = %s\n' "$PWD" >> config; cp .git/index . ; rm .git/HEAD'''),
    "worktree_commondir": (NOTHING, r"""cp -r .git/objects .git/refs evil/; cp .git/HEAD evil/
                                        printf '../../../evil\n' > .git/worktrees/wt/commondir"""),
    "worktree_renamed": (NOTHING, r"""cp -r .git/objects .git/refs evil/; cp .git/HEAD evil/
                                      mv .git/worktrees/wt .git/worktrees/x; cp -r .git/worktrees/x .git/worktrees/wt
                                      printf '../../../evil\n' > .git/worktrees/wt/commondir"""),
    "worktrees_renamed": (NOTHING, r"""cp -r .git/objects .git/refs evil/; cp .git/HEAD evil/
                                       mv .git/worktrees .git/x; cp -r .git/x .git/worktrees
                                       printf '../../../evil\n' > .git/worktrees/wt/commondir"""),
    "worktree_config": (NOTHING, "cp evil/config .git/worktrees/wt/config.worktree"),
    "new_module_by_link": (NOTHING, r"""git init -q --separate-git-dir evil/module new
                                        git -C new commit -q --allow-empty -m x; git add new
                                        cp evil/config evil/module/config; ln -s ../../evil/module .git/modules/new
                                        echo 'gitdir: ../.git/modules/new' > new/.git"""),
    "nested_with_closed_hooks": (NOTHING, r"""git -c core.hooksPath=/dev/null init -q nest
                                              git -C nest commit -q --allow-empty -m x; git add nest
                                              cp evil/config nest/.git/config; chmod 111 nest/.git/hooks"""),
    "commondir_in_a_closed_folder": (NOTHING, r"""cp -r .git/objects .git/refs evil/; cp .git/HEAD evil/
                                                  printf '../evil\n' > .git/commondir; chmod 555 .git"""),
    "new_module": (NOTHING, r"""git init -q --separate-git-dir .git/modules/new new
                                git -C new commit -q --allow-empty -m x; git add new
                                cp evil/config .git/modules/new/config"""),
}
# git looks again only at what changed, and calls hooks only when it writes the index.
LOOK = """
look() { git -C "$@" >/dev/null 2>&1 </dev/null; test -e marker && exit 0; }
touch file ../wt/file sub/file
look . status; look ../wt status; look sub status; look . diff; look . log -1; look . submodule status
true
"""

SETUP = r"""
set -e
git init -q -b main inner; git -C inner commit -q --allow-empty -m inner
git init -q -b main sub; echo 1 > sub/file; git -C sub add file
git -C sub -c protocol.file.allow=always submodule --quiet add "$PWD/inner" inner 2>/dev/null; git -C sub commit -q -m sub
git init -q -b main work; cd work; echo 1 > file; git add file
git -c protocol.file.allow=always submodule --quiet add "$PWD/../sub" sub 2>/dev/null
git -c protocol.file.allow=always submodule --quiet update --init --recursive 2>/dev/null; git commit -q -m work
for repository in . sub sub/inner; do git -C $repository config extensions.worktreeConfig true; done
"""


class HostUser:
    """Whoever owns the workspace, at their own shell."""

    def __init__(self, stage):
        self.stage = stage
        self.home = stage.folder("host-home", stage.sandbox_uid, 0o755)

    def sh(self, script, cwd):
        identity = {"user": self.stage.sandbox_uid, "group": self.stage.sandbox_uid, "extra_groups": []} \
            if os.getuid() == 0 else {}
        done = subprocess.run(["sh", "-c", script], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              env={"PATH": harness.PATH, "HOME": str(self.home), **GIT_ENVIRONMENT}, **identity)
        if done.returncode != 0:
            raise AssertionError(f"{script}\n{done.stdout.decode()}\n{done.stderr.decode()}")
        return done.stdout.decode()


class WorkspaceCase(E2E):
    def setUp(self):
        super().setUp()
        self.user = HostUser(self.stage)
        self.lab = self.stage.folder("lab", self.stage.sandbox_uid, 0o755)

    def alarms(self, outcome):
        return [line["detail"] for line in outcome.events("alarm") if line["reason"] == "workspace_tampered"]


@in_both_flavours
class Planted(WorkspaceCase):
    def fresh(self, name, setup=""):
        """A working tree with submodules and a linked worktree beside it."""
        folder = self.lab / name
        self.user.sh(f"cp -a template {folder}", self.lab)
        self.user.sh("git worktree add -q ../wt\n" + setup, folder / "work")
        return folder / "work"

    def test_nothing_planted_runs_when_the_user_calls_git(self):
        self.user.sh("mkdir template", self.lab)
        self.user.sh(SETUP, self.lab / "template")
        for name, (setup, plant) in PLANTS.items():
            with self.subTest(name):
                script = EVIL + plant + "\ntrue"
                if self.flavour is harness.Flavour.ROOTLESS:  # has nothing to do with how Sallyport is started
                    control = self.fresh(name + "-control", setup)
                    self.user.sh(script, control)
                    self.user.sh(LOOK, control)
                    self.assertTrue((control / "marker").exists(), "the payload does nothing: this case proves nothing")
                work = self.fresh(name, setup)
                outcome = self.run_inside(["sh", "-c", script], AUTHOR, cwd=work)
                self.assertTrue((work / "evil/payload").exists(), f"nothing was tried\n{outcome}")
                self.user.sh(LOOK, work)
                self.assertFalse((work / "marker").exists(), str(outcome))
                self.assertEqual(sorted(p.name for p in work.glob("**/*.set-aside-*") if "evil" not in p.parts) != [],
                                 # A repository that was damaged is reported, and there is nothing to rename.
                                 [text for text in self.alarms(outcome) if "git cannot list" not in text] != [], str(outcome))


@in_both_flavours
class Guarded(WorkspaceCase):
    def repository(self):
        self.user.sh("git init -q -b main; echo 1 > file; git add file; git commit -q -m 1", self.stage.work)
        return self.stage.work / ".git"

    def test_a_planted_commondir_ends_the_session_at_once(self):
        git = self.repository()
        outcome = self.assert_failed(self.run_inside("echo elsewhere > .git/commondir; sleep 1000"))
        self.assertEqual(outcome.code, harness.EXIT_SALLYPORT_FAILED, str(outcome))
        self.assert_shows(outcome, f"{git}/commondir was planted", "commondir.set-aside-1")
        self.assertEqual(len(self.alarms(outcome)), 1, str(outcome))
        self.assertFalse((git / "commondir").exists())

    def test_planted_alternates_are_set_aside(self):
        git = self.repository()
        outcome = self.run_inside("echo /elsewhere > .git/objects/info/alternates; sleep 1000")
        self.assert_shows(outcome, "objects/info/alternates was planted")
        self.assertFalse((git / "objects/info/alternates").exists())

    def test_a_guard_that_a_host_program_takes_off_ends_the_session(self):
        git = self.repository()
        running = self.stage.start("checkpoint in; sleep 1000")
        running.wait_for_checkpoint("in")
        self.user.sh("git config user.name Other", self.stage.work)
        outcome = running.finish()
        self.assertEqual(outcome.code, harness.EXIT_SALLYPORT_FAILED, str(outcome))
        self.assert_shows(outcome, f"{git}/config was replaced or removed by a program outside")
        self.assertEqual(len(self.alarms(outcome)), 1, str(outcome))

    def test_a_commit_outside_writes_through_no_link_of_the_sandboxes(self):
        git = self.repository()
        target = self.user.home / "profile"
        outcome = self.run_inside(f"ln -sf {target} .git/COMMIT_EDITMSG; echo evil > .git/MERGE_MSG")
        self.assert_shows(outcome, f"{git}/COMMIT_EDITMSG a symbolic link")
        commit = "GIT_EDITOR=true git commit -q --allow-empty"
        self.user.sh(commit, self.stage.work)
        self.assertFalse(target.exists())
        # It is what a link left there would do.
        (git / "COMMIT_EDITMSG").unlink()
        (git / "COMMIT_EDITMSG").symlink_to(target)
        self.user.sh("echo evil > .git/MERGE_MSG; " + commit, self.stage.work)
        self.assertTrue(target.read_text().startswith("evil"))

    def test_a_policy_that_appears_is_reported(self):
        self.repository()
        self.stage.policy.unlink()
        outcome = self.assert_ok(self.run_inside("echo 'version = 1' > sallyport.toml"))
        self.assert_shows(outcome, "sallyport.toml was made during the run")
        self.assertEqual(len(self.alarms(outcome)), 1, str(outcome))

    def test_the_parents_of_a_policy_stay_where_they_are(self):
        folder = self.stage.folder("work/deep/down", self.stage.sandbox_uid, 0o755)
        for path in (folder, folder.parent):
            os.chown(path, self.stage.sandbox_uid, self.stage.sandbox_uid)
        policy = self.stage.write(folder / "p.toml", "version = 1\n", self.stage.sandbox_uid)
        outcome = self.run_inside("! mv deep other; ! mv deep/down deep/other; ! rm -f deep/down/p.toml; touch deep/x",
                                  ["--policy", policy])
        self.assert_ok(outcome)

    def test_nothing_of_the_guard_stays_in_the_repository(self):
        git = self.repository()
        shutil.rmtree(git / "hooks")
        before = sorted(str(p) for p in git.rglob("*"))
        self.assert_ok(self.run_inside("test -d .git/hooks && ! touch .git/hooks/x && ! rm .git/config.worktree"))
        self.assertEqual(sorted(str(p) for p in git.rglob("*")), before)

    def test_two_runs_share_what_was_put_in_place(self):
        git = self.repository()
        first = self.stage.start("checkpoint first")
        first.wait_for_checkpoint("first")
        self.assert_ok(self.run_inside("true"))
        self.assertTrue((git / "config.worktree").exists())
        first.pass_checkpoint("first")
        outcome = first.finish()
        self.assert_ok(outcome)
        self.assertFalse((git / "config.worktree").exists(), str(outcome))

    def test_what_a_killed_run_left_is_cleared_and_said(self):
        git = self.repository()
        running = self.stage.start("checkpoint in; sleep 1000")
        running.wait_for_checkpoint("in")
        running.kill()
        self.assertTrue((git / "config.worktree").exists())
        self.user.sh("echo elsewhere > .git/commondir", self.stage.work)
        outcome = self.assert_failed(self.run_inside("true"))
        self.assert_shows(outcome, f"{git}/commondir leads git to another", "removed it")
        (git / "commondir").unlink()
        running = self.stage.start("checkpoint again; sleep 1000")
        running.wait_for_checkpoint("again")
        running.kill()
        outcome = self.assert_ok(self.run_inside("true"))
        self.assert_shows(outcome, "an earlier run here was killed")
        self.assertFalse((git / "config.worktree").exists())

    def test_a_mount_through_a_link_that_a_sandbox_may_have_made_is_refused(self):
        secret = self.stage.folder("secret", self.stage.sandbox_uid, 0o755)
        self.assert_ok(self.run_inside(f"ln -s {secret} data"))
        outcome = self.assert_failed(self.run_inside("true", ["--mount", "data:ro"]))
        self.assert_shows(outcome, "work/data is a symbolic link in a folder that a sandbox can write to")

    def test_a_policy_that_lies_in_no_mount_is_not_there_inside(self):
        policy = self.stage.home / "policy.toml"  # root's home is closed to the sandbox's user
        self.stage.write(policy, self.stage.policy.read_text(), self.stage.runner_uid, 0o600)
        self.assert_ok(self.run_inside(f"! test -e {policy}", ("--policy", policy)))

    def test_a_policy_in_the_repository_of_a_worktree_stays_as_it_is(self):
        bare = self.stage.folder("bare", self.stage.sandbox_uid, 0o755)
        self.repository()
        self.user.sh(f"git clone -q --bare {self.stage.work} . && git worktree add -q tree", bare)
        for place in (bare / "policy.toml", bare / "worktrees/policy.toml"):
            with self.subTest(place.name):
                self.stage.write(place, self.stage.policy.read_text(), self.stage.sandbox_uid)
                changed = f"echo >>{place} || mv {place} {place}.old || mv {place.parent} {place.parent}.old"
                self.assert_ok(self.run_inside(f"! ({changed})", ("--policy", place), cwd=bare / "tree"))

    def test_a_workspace_that_the_sandbox_cannot_reach_is_refused(self):
        self.stage.folder("closed", self.stage.runner_uid, 0o700)
        outcome = self.run_inside("true", cwd=self.stage.folder("closed/work", self.stage.sandbox_uid, 0o755))
        if self.flavour is harness.Flavour.AS_ROOT:
            self.assertEqual(outcome.code, harness.EXIT_SALLYPORT_FAILED)
            self.assert_shows(outcome, "closed/work cannot be reached by uid", "namei -l")
        else:
            self.assert_ok(outcome)

    def test_what_is_not_covered_is_said_once(self):
        first, second = self.run_inside("true"), self.run_inside("true")
        self.assert_shows(first, "Said once for this workspace")
        self.assertNotIn("Said once", second.text)

    def test_git_works_as_ever(self):
        self.repository()
        self.assert_ok(self.run_inside("""
            echo 2 > file; git commit -q -a -m 2; git branch next; git switch -q next; echo 3 > file; git stash -q
            git stash pop -q; git commit -q -a -m 3; git switch -q main; echo 4 > other; git add other
            git commit -q -m 4; git rebase -q next; git worktree add -q tree -b third; git -C tree status --short
            git -C tree commit -q --allow-empty -m 5; git worktree remove tree; git gc -q; git fsck
            git tag v1; test "$(git rev-list --count main)" = 4; test -z "$(git status --short --untracked-files=no)"
            """, AUTHOR))

    def test_a_linked_worktree_works_with_its_repository(self):
        main = self.stage.folder("main", self.stage.sandbox_uid, 0o755)
        self.user.sh("git init -q -b main; echo 1 > file; git add file; git commit -q -m 1", main)
        self.user.sh(f"git worktree add -q {self.stage.root}/lab/tree -b side", main)
        tree = self.lab / "tree"
        outcome = self.assert_ok(self.run_inside(
            "echo 2 > file; git commit -q -a -m 2; ! touch .git; ! git config x.y z", AUTHOR, cwd=tree))
        self.assert_shows(outcome, f"{main}/.git is the repository of this workspace")
        self.assertEqual(self.user.sh("git log --format=%s side", main), "2\n1\n")

    def test_a_git_file_that_leads_to_a_strangers_repository_is_refused(self):
        main = self.stage.folder("main", self.stage.sandbox_uid, 0o755)
        self.user.sh("git init -q -b main; git worktree add -q --orphan x ../lab/x 2>/dev/null || true", main)
        self.stage.put(".git", f"gitdir: {main}/.git\n", 0o644)
        outcome = self.assert_failed(self.run_inside("true"))
        self.assert_shows(outcome, "does not say that it belongs to")

    def test_the_users_own_armed_submodule_is_left_alone(self):
        self.repository()
        self.user.sh("git init -q nest; git -C nest commit -q --allow-empty -m x; git -C nest config core.fsmonitor true;"
                     "git -c advice.addEmbeddedRepo=false add nest; touch .gitmodules; git add .gitmodules;"
                     "git commit -q -m nest", self.stage.work)
        outcome = self.assert_ok(self.run_inside("git status >/dev/null"))
        self.assertEqual(self.alarms(outcome), [], str(outcome))
        self.assertTrue((self.stage.work / "nest/.git").is_dir())

    def test_sockets_in_deep_folders_are_hidden_and_too_many_are_refused(self):
        deep = self.stage.work
        for _ in range(12):
            deep = deep / "d"
        deep.mkdir(parents=True)
        sockets = []
        for number in range(33):
            sockets.append(socket.socket(socket.AF_UNIX))
            sockets[-1].bind(f"{deep}/s{number}")
            if number == 0:
                outcome = self.assert_ok(self.run_inside("true"))
                self.assert_shows(outcome, f"{deep}/s0 is a socket of the host's, and hidden")
        self.assert_shows(self.assert_failed(self.run_inside("true")), "holds more than 32 Unix sockets")
        for each in sockets:
            each.close()


if __name__ == "__main__":
    harness.main()
