#!/usr/bin/python3
"""What a sandbox plants in its workspace does not run when the host's user calls git there afterwards.

Every case plants one thing whose payload writes a marker. The same commands run first in a copy without a guard, where
the payload must fire: else the case proves nothing.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import threading

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
    "new_module": (NOTHING, r"""git init -q --separate-git-dir .git/modules/new new
                                git -C new commit -q --allow-empty -m x; git add new
                                cp evil/config .git/modules/new/config"""),
}
# git looks again only at what changed, and calls hooks only when it writes the index.
LOOK = """
for tree in . ../wt sub; do
  touch "$tree/file"
  for command in status diff "log -1" "submodule status"; do git -C "$tree" $command >/dev/null 2>&1 </dev/null; done
done
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
                                 self.alarms(outcome) != [], str(outcome))


if __name__ == "__main__":
    harness.main()
