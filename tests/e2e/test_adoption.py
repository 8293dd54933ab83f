#!/usr/bin/python3
"""Containers that others made: `sallyport adopt`, a label, and compose."""

import json
import os
import pathlib
import subprocess

import containers
from containers import IMAGE, Containers
from harness import EXIT_SALLYPORT_FAILED, main

SECCOMP = pathlib.Path(__file__).parents[2] / "packaging/seccomp.json"
LABEL = "org.sallyport.policy"
HARDENED = {"--network": "none", "--cap-drop": "ALL", "--security-opt": "no-new-privileges", "--user": "1000:1000",
            "--security-opt=": f"seccomp={SECCOMP}"}
SLEEP = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]
CLONE = "cd /tmp && rm -rf widget && git clone -q https://forge.test/acme/widget"


def setUpModule():
    containers.share_an_engine()


def options(hardened):
    return [word for option, value in hardened.items() for word in (option.rstrip("="), value)]


class Adoption(Containers):
    def tearDown(self):
        for container in self.engine.containers():
            self.docker("rm", "-fv", container, check=False)  # the daemon's own may be on their way already
        self.wait_for_no_container()
        super().tearDown()

    def docker(self, *arguments, check=True):
        done = subprocess.run(["/usr/bin/docker", *arguments], capture_output=True, text=True, check=False,
                              env=os.environ | {"DOCKER_HOST": f"unix://{self.engine.socket}"})
        if check:
            self.assertEqual(done.returncode, 0, f"docker {arguments}: {done.stderr}")
        return done

    def start_container(self, name="agent", hardened=HARDENED, more=(), command=SLEEP):
        self.docker("run", "-d", "--name", name, *options(hardened), *more, IMAGE, *command)

    def inside(self, name, script):
        return self.docker("exec", name, "sh", "-ec", script, check=False)

    def adopt(self, *options_of_adopt):
        return self.sallyport("adopt", "agent", "--policy", self.stage.policy, "--quiet", *options_of_adopt)

    def assert_works(self, name):
        cloned = self.inside(name, CLONE)
        self.assertEqual((cloned.returncode, cloned.stderr), (0, ""))

    def state_of(self, name):
        return self.docker("inspect", "-f", "{{.State.Status}}", name).stdout.strip()

    def wait_for(self, condition, what):
        self.daemon.wait_for(condition, what)

    def session_runs(self, name):
        return any(each["name"] == name and each["state"] == "running" for each in self.sessions())


class Adopted(Adoption):
    def test_a_sealed_container_waits_and_then_has_its_policy(self):
        self.start_container()
        self.assertNotEqual(self.inside("agent", CLONE).returncode, 0)
        adopted = self.assert_ok(self.adopt())
        self.assertEqual(adopted.stdout, "agent\n")
        self.assert_works("agent")
        start = next(line for line in self.stage.audit() if line["kind"] == "session_start")
        self.assertIn(f"adopted container {self.docker('inspect', '-f', '{{.Id}}', 'agent').stdout.strip()}", start["container"])

        refused = self.exec("agent", "true")
        self.assertEqual(refused.code, EXIT_SALLYPORT_FAILED)
        self.assert_shows(refused, "docker exec")
        again = self.adopt("--name", "twice")
        self.assertEqual(again.code, EXIT_SALLYPORT_FAILED)
        self.assert_shows(again, "has a session already")

        self.assert_ok(self.sallyport("destroy", "agent"))
        self.wait_for(lambda: self.state_of("agent") == "exited", "its end")

    def test_its_end_is_the_sessions_end(self):
        self.start_container()
        self.assert_ok(self.adopt())
        self.docker("kill", "agent")
        self.wait_for(lambda: not self.session_runs("agent"), "the session's end")
        self.assertIn("the container agent ended", self.status("agent")["summary"])
        # Another start of it is another session.
        self.docker("start", "agent")
        self.assertNotEqual(self.inside("agent", CLONE).returncode, 0)
        self.assert_ok(self.sallyport("start", "agent", "--quiet"))
        self.assert_works("agent")

    def test_a_laxer_one_is_refused_with_the_lines_to_add_and_stopped(self):
        for missing, said in (("--cap-drop", "add `cap_drop: [ALL]`"), ("--security-opt", "no-new-privileges:true"),
                              ("--security-opt=", "seccomp=/usr/share/sallyport/seccomp.json"),
                              ("--user", 'write a number, as in `user: "1000:1000"`')):
            with self.subTest(missing):
                self.start_container(hardened={name: value for name, value in HARDENED.items() if name != missing})
                refused = self.adopt()
                self.assertEqual(refused.code, EXIT_SALLYPORT_FAILED)
                self.assert_shows(refused, "the container agent was stopped", said)
                self.assertEqual(self.state_of("agent"), "exited")
                self.assertEqual([line["reason"] for line in refused.events("alarm")], ["engine_refused"])
                self.docker("rm", "-f", "agent")
        for more, said in ((("--cap-add", "NET_ADMIN"), "NET_ADMIN"), (("--privileged",), "Privileged"),
                           (("--pid", "host"), "PidMode"), (("-v", "/run:/host"), "/run"),
                           (("--device", "/dev/fuse"), "/dev/fuse")):
            with self.subTest(more):
                self.start_container(more=more)
                refused = self.adopt()
                self.assertEqual(refused.code, EXIT_SALLYPORT_FAILED)
                self.assert_shows(refused, "the container agent was stopped", said)
                self.assertEqual(self.state_of("agent"), "exited")
                self.docker("rm", "-f", "agent")
        self.assertEqual(self.sessions(), [])

    def test_what_is_not_there_or_does_not_run(self):
        refused = self.adopt()
        self.assertEqual(refused.code, EXIT_SALLYPORT_FAILED)
        self.assert_shows(refused, "No such container")
        self.docker("create", "--name", "agent", *options(HARDENED), IMAGE, *SLEEP)
        refused = self.adopt()
        self.assertEqual(refused.code, EXIT_SALLYPORT_FAILED)
        self.assert_shows(refused, "docker start agent")


class ByLabel(Adoption):
    def test_a_label_asks_for_a_session(self):
        self.start_container(more=("--label", f"{LABEL}={self.stage.policy}"))
        self.wait_for(lambda: self.session_runs("agent"), "the session")
        self.assert_works("agent")
        # A restart is another session, by itself.
        first = self.status("agent")["id"]
        self.docker("restart", "-t", "0", "agent")
        self.wait_for(lambda: self.session_runs("agent") and self.status("agent")["id"] != first, "another session")
        self.assert_works("agent")

    def test_a_laxer_one_with_a_label_is_stopped(self):
        hardened = HARDENED | {"--user": "0:0"}
        self.start_container(hardened=hardened, more=("--label", f"{LABEL}={self.stage.policy}"))
        self.wait_for(lambda: self.state_of("agent") == "exited", "its end")
        self.wait_for(lambda: self.sessions() == [], "no session")
        self.assertEqual([line["reason"] for line in self.stage.audit() if line["kind"] == "alarm"], ["engine_refused"])

    def test_one_ends_no_session_that_has_its_name(self):
        self.new("agent")
        first = self.status("agent")["id"]
        self.start_container(more=("--label", f"{LABEL}={self.stage.policy}"))
        # The engine tells of it after the other, so that one's session says that it was looked at.
        self.start_container("other", more=("--label", f"{LABEL}={self.stage.policy}"))
        self.wait_for(lambda: self.session_runs("other"), "the other's session")
        self.assertEqual((self.status("agent")["id"], self.status("agent")["state"]), (first, "running"))
        self.assertNotEqual(self.inside("agent", CLONE).returncode, 0)

    def test_one_that_ran_before_the_daemon_is_found(self):
        self.daemon.process.terminate()
        self.assertEqual(self.daemon.finish().code, 0)
        self.start_container(more=("--label", f"{LABEL}={self.stage.policy}"))
        self.daemon = self.start_daemon()
        self.wait_for(lambda: self.session_runs("agent"), "the session")
        self.assert_works("agent")

    def test_who_joins_a_sandboxs_network_is_as_sealed(self):
        self.start_container()
        self.assert_ok(self.adopt())
        joins = HARDENED | {"--network": "container:agent"}
        self.start_container("second", joins)
        self.wait_for(lambda: self.inside("second", CLONE).returncode == 0, "the same way out")
        self.assertTrue(self.session_runs("agent"))
        self.start_container("third", joins | {"--cap-drop": "CHOWN"})
        self.assert_was_lax("third")

    def assert_was_lax(self, name):
        self.wait_for(lambda: self.state_of(name) == "exited", "its end")
        self.wait_for(lambda: not self.session_runs("agent"), "the session's end")
        self.assertIn(name, [line["detail"] for line in self.stage.audit() if line["kind"] == "alarm"][-1])

    LAX = HARDENED | {"--cap-drop": "CHOWN"}

    def test_whatever_it_names_the_network_by(self):
        with self.subTest("another that joined"):
            self.start_container()
            self.start_container("second", HARDENED | {"--network": "container:agent"})
            self.assert_ok(self.adopt())
            self.start_container("third", self.LAX | {"--network": "container:second"})
            self.assert_was_lax("third")
        self.docker("rm", "-fv", "agent", "second", "third")
        self.assert_ok(self.sallyport("destroy", "agent"))
        with self.subTest("a name that nobody had then"):
            self.docker("create", "--name", "early", *options(self.LAX | {"--network": "container:agent"}), IMAGE, *SLEEP)
            self.start_container()
            self.assert_ok(self.adopt())
            self.docker("start", "early")
            self.assert_was_lax("early")

    def test_one_that_joined_before_and_was_paused(self):
        self.start_container()
        self.start_container("second", self.LAX | {"--network": "container:agent"})
        self.docker("pause", "second")
        self.adopt()
        self.assert_was_lax("second")

    def test_one_that_joins_a_session_of_an_image(self):
        self.new("agent")
        self.start_container("second", self.LAX | {"--network": f"container:{self.both()[0]['Id']}"})
        self.assert_was_lax("second")


COMPOSE = """
version: "2.4"
services:
  agent: &sealed
    image: {image}
    network_mode: none
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true", "seccomp={seccomp}"]
    user: "1000:1000"
    labels: {{{label}: {policy}}}
    command: {command}
  helper:
    image: {image}
    network_mode: "service:agent"
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true", "seccomp={seccomp}"]
    user: "1000:1000"
    command: {command}
"""


class Compose(Adoption):
    def compose(self, *arguments, text=COMPOSE, check=True):
        file = self.stage.root / "compose/docker-compose.yml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.format(image=IMAGE, seccomp=SECCOMP, label=LABEL, policy=self.stage.policy,
                                    command=json.dumps(SLEEP)))
        done = subprocess.run(["/usr/bin/docker-compose", "-f", file, *arguments], capture_output=True, text=True, check=False,
                              env=os.environ | {"DOCKER_HOST": f"unix://{self.engine.socket}", "HOME": "/tmp"})
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_two_services_share_one_sealed_network(self):
        self.compose("up", "-d")
        self.wait_for(lambda: self.session_runs("compose_agent_1"), "the session")
        for name in ("compose_agent_1", "compose_helper_1"):
            self.wait_for(lambda: self.inside(name, CLONE).returncode == 0, f"the session's files in {name}")
            self.assert_works(name)
        self.assertEqual(len(self.sessions()), 1)
        self.compose("down", "-t", "0")
        self.wait_for(lambda: not self.session_runs("compose_agent_1"), "the session's end")

    def test_the_same_without_the_hardening_is_stopped(self):
        # The second service may not find the first any more.
        self.compose("up", "-d", text=COMPOSE.replace("cap_drop: [ALL]", "cap_drop: [CHOWN]"), check=False)
        self.wait_for(lambda: self.state_of("compose_agent_1") == "exited", "its end")
        self.wait_for(lambda: self.sessions() == [], "no session")


if __name__ == "__main__":
    main()
