#!/usr/bin/python3
"""Sessions in containers of Podman's, by the API that looks like Docker's."""

import json
import os
import pathlib
import signal
import unittest

from containers import IMAGE, Containers  # first: it sees to the static program
import harness
import images
from harness import TEST_UID, Flavour
from podman import Podman, Rootless
from test_adoption import CLONE, HARDENED, LABEL, SLEEP, options


class WithPodman(Containers):
    @classmethod
    def begin_engine(cls):
        return Podman()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = cls.begin_engine()
        cls.addClassCleanup(cls.shared.close)
        images.import_image(cls.shared, IMAGE)

    def names(self, session):
        return f"sallyport-{session['id'][:12]}", f"sallyport-{session['id'][:12]}-pause"

    def podman_inspect(self, name):
        return json.loads(self.engine.podman("inspect", name).stdout)[0]


class Life(WithPodman):
    def test_a_container_is_a_sandbox(self):
        self.assertEqual(self.new("agent"), "agent")
        self.assert_ok(self.exec("agent", "git clone -q https://forge.test/acme/widget\ncd widget\n"
                                          "git commit -q --allow-empty -m from-inside\ngit push -q origin HEAD:new",
                                 *harness.AUTHOR))
        self.assertIn("from-inside", self.forge.repo_git("acme/widget", "log", "-1", "--format=%s", "new"))
        inside = self.exec("agent", "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null")
        self.assertNotIn(self.stage.token, inside.text)
        self.assertEqual({line["credential"] for line in self.stage.audit() if line["kind"] == "credential"}, {"forge"})

    def test_it_stops_and_starts_and_leaves_nothing(self):
        self.new("agent")
        self.assert_ok(self.exec("agent", "echo kept >made; echo gone >/tmp/gone; echo gone >~/gone"))
        self.assertEqual((self.stage.work / "made").stat().st_uid, self.stage.sandbox_uid)
        self.assert_ok(self.sallyport("stop", "agent"))
        self.assertEqual(self.engine.containers(), set())
        self.assert_ok(self.sallyport("start", "agent", "--quiet"))
        self.assertEqual(self.exec("agent", "cat made; ls /tmp ~").stdout.splitlines()[0], "kept")
        self.assertEqual(self.exec("agent", "test ! -e /tmp/gone && test ! -e ~/gone").code, 0)
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.assertEqual(self.engine.containers(), set())

    def test_folders_in_memory_are_the_users(self):
        self.new("agent")
        uid = self.stage.sandbox_uid
        self.assertEqual(self.exec("agent", "stat -c '%u %a' ~ /tmp").stdout, f"{uid} 700\n{uid} 1777\n")

    def test_an_image_that_is_not_there(self):
        refused = super(Containers, self).sallyport("new", "--image", "no-such:image")
        self.assertEqual(refused.code, harness.EXIT_SALLYPORT_FAILED)
        self.assert_shows(refused, "`podman pull no-such:image`")


class Hardening(WithPodman):
    def test_what_podman_says_of_it(self):
        self.new("agent")
        session = self.status("agent")
        workload, pause = map(self.podman_inspect, self.names(session))
        for each in (workload, pause):
            host = each["HostConfig"]
            self.assertEqual((each["EffectiveCaps"], each["BoundingCaps"]), (None, None))
            self.assertEqual((host["Privileged"], host["ReadonlyRootfs"], host["CapAdd"], host["Devices"]), (False, True, [], []))
            self.assertIn("no-new-privileges", host["SecurityOpt"])
            self.assertTrue(any(each.startswith("seccomp=/") for each in host["SecurityOpt"]), host["SecurityOpt"])
            self.assertGreater(host["PidsLimit"], 0)
            self.assertGreater(host["Memory"], 0)
        self.assertEqual(pause["HostConfig"]["NetworkMode"], "none")
        self.assertEqual(workload["HostConfig"]["NetworkMode"], f"container:{pause['Id']}")
        self.assertEqual(workload["Config"]["User"], f"{self.stage.sandbox_uid}:{self.stage.sandbox_uid}")
        start = next(line for line in self.stage.audit() if line["kind"] == "session_start")
        self.assertIn(f"container {workload['Id']}, pause {pause['Id']}", start["container"])

    def test_nothing_else_is_reached(self):
        self.new("agent")
        self.run_inside = self.exec_in_agent
        self.assert_refused("repo_not_granted", "git clone -q https://forge.test/acme/other",
                            shows=("The policy does not grant this repository.",))


class Ends(WithPodman):
    def test_the_end_of_the_pause_is_the_sessions_end(self):
        self.new("agent")
        workload, pause = self.names(self.status("agent"))
        self.engine.podman("kill", pause)
        self.daemon.wait_for(lambda: self.status("agent")["state"] == "ended", "the session's end")
        self.assertIn(f"its pause, {pause}, ended", self.status("agent")["summary"])
        self.daemon.wait_for(lambda: self.engine.containers() == set(), "the containers' end")

    def test_what_a_killed_daemon_left_is_removed_by_the_next(self):
        self.new("agent")
        self.assertEqual(len(self.engine.containers()), 2)
        os.kill(self.daemon.pid, signal.SIGKILL)
        self.daemon.finish()
        self.daemon = self.start_daemon()
        self.daemon.wait_for(lambda: self.engine.containers() == set(), "their removal")
        self.assertEqual(self.new("agent"), "agent")


class OfOthers(WithPodman):
    """Containers that `podman run` started."""

    def tearDown(self):
        self.daemon.wait_for(self.all_are_removed, "the containers' end")
        super().tearDown()

    def all_are_removed(self):
        self.engine.podman("rm", "-fa", "-t", "0", check=False)  # fails while the daemon ends one
        return not self.engine.containers()

    def start_container(self, *more, without=None):
        filter_file = self.stage.root / "daemon/containers/seccomp.json"  # Podman tells the path, and not what it holds
        if not filter_file.exists():  # the first session makes it
            self.new("first")
            self.assert_ok(self.sallyport("destroy", "first"))
        hardened = HARDENED | {"--security-opt=": f"seccomp={filter_file}"}
        hardened.pop(without, None)
        self.engine.podman("run", "-d", "--name", "agent", *options(hardened), *more, IMAGE, *SLEEP)

    def inside(self, script):
        return self.engine.podman("exec", "agent", "sh", "-ec", script, check=False)

    def assert_works(self):
        # Podman gives a container without a network no /etc/resolv.conf over which ours could be mounted.
        cloned = self.inside(f"export https_proxy=http://198.18.0.1:3128; {CLONE}")
        self.assertEqual((cloned.returncode, cloned.stderr), (0, ""))

    def session_runs(self):
        return any(each["name"] == "agent" and each["state"] == "running" for each in self.sessions())

    def test_one_is_adopted_and_its_end_is_the_sessions_end(self):
        self.start_container()
        self.assertNotEqual(self.inside(CLONE).returncode, 0)
        self.assert_ok(self.sallyport("adopt", "agent", "--policy", self.stage.policy, "--quiet"))
        self.assert_shows(self.assert_failed(self.exec("agent", "true")), "`podman exec ")
        self.assert_works()
        self.engine.podman("kill", "agent")
        self.daemon.wait_for(lambda: not self.session_runs(), "the session's end")

    def test_a_label_asks_for_a_session(self):
        self.start_container("--label", f"{LABEL}={self.stage.policy}")
        self.daemon.wait_for(self.session_runs, "the session")
        self.assert_works()

    def test_a_laxer_one_is_refused_and_stopped(self):
        self.start_container(without="--cap-drop")
        refused = self.sallyport("adopt", "agent", "--policy", self.stage.policy, "--quiet")
        self.assertEqual(refused.code, harness.EXIT_SALLYPORT_FAILED)
        self.assert_shows(refused, "the container agent was stopped", "cap_drop")
        # Podman first calls it "stopped", until its own helper has cleaned up.
        self.daemon.wait_for(lambda: self.podman_inspect("agent")["State"]["Status"] == "exited", "its end")


class WithoutRoot(WithPodman):
    flavour = Flavour.ROOTLESS

    @classmethod
    def begin_engine(cls):
        return Rootless(TEST_UID)

    def test_a_container_is_a_sandbox(self):
        made = self.assert_ok(super(Containers, self).sallyport("new", "agent", "--image", IMAGE))
        self.assert_ok(self.exec("agent", "git clone -q https://forge.test/acme/widget\ncd widget\n"
                                          "git commit -q --allow-empty -m from-inside\ngit push -q origin HEAD:new",
                                 *harness.AUTHOR))
        self.assertIn("from-inside", self.forge.repo_git("acme/widget", "log", "-1", "--format=%s", "new"))
        self.assertEqual((self.stage.work / "widget").stat().st_uid, TEST_UID)
        self.assertEqual(self.exec("agent", "stat -c '%u %a' ~; id -u").stdout, f"{TEST_UID} 700\n{TEST_UID}\n")
        self.assertEqual({line["credential"] for line in self.stage.audit() if line["kind"] == "credential"}, {"forge"})
        if pathlib.Path("/sys/fs/cgroup/memory").exists():
            self.assert_shows(made, "cannot limit memory")
        self.assert_ok(self.sallyport("stop", "agent"))
        self.assertEqual(self.engine.containers(), set())
        self.assert_ok(self.sallyport("start", "agent", "--quiet"))
        self.assert_ok(self.exec("agent", "test -e widget"))
        self.assert_ok(self.sallyport("destroy", "agent"))


if __name__ == "__main__":
    harness.main()
