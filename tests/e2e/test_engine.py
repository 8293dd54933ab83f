#!/usr/bin/python3
"""The client of the container engine's API against a real dockerd."""

import json
import os
import pathlib
import select
import subprocess
import time
import unittest

import engine as engine_module
from engine import Engine

BIN_DIR = pathlib.Path(os.environ.get("SALLYPORT_BIN_DIR", pathlib.Path(__file__).parents[2] / "build/debug/bin"))
TIMEOUT_SECONDS = 120
USER = f"{engine_module.TEST_UID}:{engine_module.TEST_UID}"
# Lets everything through but one call, which shows that it is in force.
PROFILE = json.dumps({"defaultAction": "SCMP_ACT_ALLOW",
                      "syscalls": [{"names": ["sethostname", "mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]})
OURS = {"image": "busybox:test", "user": USER, "seccomp": PROFILE, "labels": {"test.mark": "yes"},
        "tmpfs": {"/tmp": "rw,nosuid,nodev,size=1m,mode=1777"}}
SLEEP = ["sh", "-c", "trap 'exit 7' TERM; : >/tmp/ready; while true; do sleep 1 & wait $!; done"]


class Refused(Exception):
    def __init__(self, answer):
        super().__init__(answer["error"])
        self.reason = answer["reason"]


class Probe:
    """tests/engine/probe.cc."""

    def __init__(self, socket):
        self.process = subprocess.Popen([BIN_DIR / "engine_probe", socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.events = []
        self._answers = {}
        self._tag = 0
        self._rest = b""

    def close(self):
        self.process.stdin.close()
        self.process.stdout.read()  # events may still come
        self.process.stdout.close()
        code = self.process.wait(TIMEOUT_SECONDS)
        assert code == 0, f"engine_probe ended with {code}"

    def begin(self, do, **more):
        self._tag += 1
        self.process.stdin.write(json.dumps({"tag": self._tag, "do": do, **more}).encode() + b"\n")
        self.process.stdin.flush()
        return self._tag

    def end(self, tag):
        self._read_until(lambda: tag in self._answers, f"answer {tag}")
        answer = self._answers.pop(tag)
        if "error" in answer:
            raise Refused(answer)
        return answer["value"]

    def ask(self, do, **more):
        return self.end(self.begin(do, **more))

    def wait_event(self, kind, after=0, **fields):
        """The first such event behind the first `after` ones."""
        def found():
            return next((event for event in self.events[after:]
                         if event["event"] == kind and all(event.get(key) == value for key, value in fields.items())), None)
        self._read_until(found, f"{kind} {fields}")
        return found()

    def _read_until(self, condition, what):
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            readable, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            if not readable:
                raise AssertionError(f"never came: {what}; events: {self.events}")
            bytes_ = os.read(self.process.stdout.fileno(), 65536)
            if not bytes_:
                raise AssertionError(f"engine_probe ended before {what}")
            *lines, self._rest = (self._rest + bytes_).split(b"\n")
            for line in map(json.loads, lines):
                if "event" in line:
                    self.events.append(line)
                else:
                    self._answers[line["tag"]] = line


class WithEngine(unittest.TestCase):
    arguments = {}

    @classmethod
    def setUpClass(cls):
        cls.engine = Engine(**cls.arguments)
        cls.addClassCleanup(cls.engine.close)
        cls.engine.import_busybox()

    def setUp(self):
        self.probe = Probe(self.engine.socket)
        self.addCleanup(self.probe.close)
        self.addCleanup(self.remove_all)
        self.told = self.probe.ask("negotiate")

    def remove_all(self):
        for container in self.engine.containers():
            self.engine.request("DELETE", f"/containers/{container}?force=1&v=1")

    def run_container(self, **more):
        container = self.probe.ask("create", **(OURS | {"command": SLEEP} | more))
        self.probe.ask("start", container=container)
        if "command" not in more:
            self.wait_for_trap(container)
        return container

    def wait_for_trap(self, container):
        """Until its first process does not ignore SIGTERM any more."""
        while self.probe.ask("exec", container=container, command=["test", "-e", "/tmp/ready"])["exit_code"] != 0:
            pass

    def inspect(self, container):
        return self.probe.ask("inspect", container=container, seccomp=PROFILE)


class Calls(WithEngine):
    def test_negotiates(self):
        self.assertEqual(self.told["kind"], "docker")
        self.assertEqual(self.told["api"], "1.41")
        self.assertTrue(self.told["seccomp"])
        self.assertFalse(self.told["rootless"])
        self.assertEqual(self.told["cgroups"], 1 if (engine_module.CGROUPS / "memory").exists() else 2)

    def test_imports_and_inspects_an_image(self):
        tar = self.engine.folder / "root.tar"
        tar.write_bytes(engine_module.busybox_tar())
        image = self.probe.ask("import", tar=str(tar), repository="imported", tag_name="new")
        self.assertRegex(image, r"^sha256:[0-9a-f]{64}$")
        told = self.probe.ask("inspect_image", image="imported:new")
        self.assertEqual(told, {"id": image, "tags": ["imported:new"]})
        tar.write_bytes(b"this is no tar" * 1000)
        with self.assertRaisesRegex(Refused, "could not import|answered POST /images/create with"):
            self.probe.ask("import", tar=str(tar), repository="imported", tag_name="bad")
        with self.assertRaises(Refused) as refused:
            self.probe.ask("inspect_image", image="there/is:none")
        self.assertEqual(refused.exception.reason, "engine_not_found")

    def test_life_of_a_container_that_is_ours(self):
        container = self.probe.ask("create", **OURS, command=SLEEP, name="ours", hostname="inside")
        created = self.inspect(container)
        self.assertFalse(created["running"])
        self.assertEqual(created["pid"], 0)
        self.probe.ask("start", container=container)
        self.probe.ask("start", container=container)  # twice is as good as once
        self.wait_for_trap(container)
        state = self.inspect("ours")
        self.assertTrue(state["running"])
        self.assertEqual(state["id"], container)
        self.assertEqual(state["name"], "ours")
        self.assertEqual(state["labels"], {"test.mark": "yes"})
        self.assertEqual(state["networks"], ["none"])
        self.assertEqual(state["problems"], [])
        inside = pathlib.Path(f"/proc/{state['pid']}")
        self.assertNotEqual(os.readlink(inside / "ns/net"), os.readlink("/proc/self/ns/net"))
        status = dict(line.split(":", 1) for line in (inside / "status").read_text().splitlines())
        self.assertEqual(status["Uid"].split(), [str(engine_module.TEST_UID)] * 4)
        self.assertEqual(status["CapBnd"].strip(), "0" * 16)
        self.assertEqual(status["NoNewPrivs"].strip(), "1")
        self.assertEqual(status["Seccomp"].strip(), "2")
        self.assertEqual([(each["id"], each["state"]) for each in self.probe.ask("list", label="test.mark=yes")],
                         [(container, "running")])
        self.assertEqual(self.probe.ask("list", label="test.mark=no"), [])
        waiting = self.probe.begin("wait", container=container)
        self.probe.ask("stop", container=container, seconds=30)
        self.assertEqual(self.probe.end(waiting), 7)
        self.probe.ask("stop", container=container, seconds=30)
        self.assertEqual(self.inspect(container)["exit_code"], 7)
        self.probe.ask("remove", container=container)
        self.probe.ask("remove", container=container)
        with self.assertRaises(Refused) as refused:
            self.inspect(container)
        self.assertEqual(refused.exception.reason, "engine_not_found")
        self.assertIn("No such container", str(refused.exception))

    def test_what_a_container_of_ours_cannot(self):
        folder = self.engine.folder / "given"
        folder.mkdir(exist_ok=True)
        (folder / "file").write_text("given")
        container = self.run_container(mount=str(folder))
        for script, words in (("echo x > /root-is-read-only", "Read-only file system"),
                              ("cat /mounted/file; echo x > /mounted/file", "Read-only file system"),
                              ("mkdir /tmp/x", "Operation not permitted"),  # the profile
                              ("dd if=/dev/zero of=/tmp/x bs=1k count=2000", "No space left"),
                              ("ulimit -n 2000", "Operation not permitted")):
            told = self.probe.ask("exec", container=container, command=["sh", "-c", script])
            self.assertIn(words, told["stderr"], script)
            self.assertNotEqual(told["exit_code"], 0)
        self.assertEqual(self.probe.ask("exec", container=container, command=["ls", "/sys/class/net"])["stdout"], "lo\n")

    def test_exec_tells_output_input_and_exit_code(self):
        container = self.run_container()
        told = self.probe.ask("exec", container=container, command=["sh", "-c", "echo out; echo err >&2; exit 3"])
        self.assertEqual((told["stdout"], told["stderr"], told["exit_code"]), ("out\n", "err\n", 3))
        self.assertFalse(told["running"])
        text = "line\n" * 100
        told = self.probe.ask("exec", container=container, command=["cat"], input=text)
        self.assertEqual((told["stdout"], told["exit_code"]), (text, 0))
        with self.assertRaises(Refused):
            self.probe.ask("exec", container="none-such", command=["true"])

    def test_attach_and_logs(self):
        container = self.probe.ask("create", **OURS, keep_input=True, command=["sh", "-c", "read x; echo got $x; echo e >&2"])
        attached = self.probe.begin("attach", container=container, input="this\n")
        self.probe.ask("start", container=container)
        self.assertEqual(self.probe.end(attached), {"stdout": "got this\n", "stderr": "e\n"})
        self.assertEqual(self.probe.ask("wait", container=container), 0)
        self.assertEqual(self.probe.ask("logs", container=container), {"stdout": "got this\n", "stderr": "e\n"})

    def test_terminal_is_resized(self):
        container = self.run_container(terminal=True, command=["sh", "-c", "while sleep 0.1; do stty size; done"])
        self.probe.ask("resize", container=container)
        attached = self.probe.begin("attach", container=container)
        told = None
        while told is None or "50 132" not in told["stdout"]:
            told = self.probe.ask("exec", container=container, command=["sh", "-c", "stty size < /dev/console"])
        self.probe.ask("kill", container=container, signal="KILL")
        self.probe.end(attached)

    def test_workload_joins_the_pauses_network(self):
        pause = self.run_container()
        workload = self.run_container(join=pause)
        states = [self.inspect(each) for each in (pause, workload)]
        self.assertEqual(states[1]["network_mode"], f"container:{pause}")
        self.assertEqual(len({os.readlink(f"/proc/{state['pid']}/ns/net") for state in states}), 1)
        self.assertEqual(states[1]["problems"], [])

    def test_kill_and_refusals(self):
        container = self.run_container()
        with self.assertRaisesRegex(Refused, "Invalid signal: NONE"):
            self.probe.ask("kill", container=container, signal="NONE")
        self.probe.ask("kill", container=container, signal="KILL")
        self.assertEqual(self.probe.ask("wait", container=container), 137)
        with self.assertRaisesRegex(Refused, "is not running"):
            self.probe.ask("kill", container=container, signal="KILL")
        with self.assertRaisesRegex(Refused, "No such image"):
            self.probe.ask("create", **(OURS | {"image": "there/is:none"}), command=["true"])
        # A name that would mean another call if it were not encoded.
        with self.assertRaises(Refused):
            self.inspect("../images")

    def test_foreign_containers_are_judged(self):
        self.engine.request("POST", "/volumes/create", {
            "Name": "smuggler", "Driver": "local", "DriverOpts": {"type": "none", "device": "/", "o": "bind"}})
        self.assertEqual(self.probe.ask("inspect_volume", volume="smuggler"), {"driver": "local", "plain": False})
        self.engine.request("POST", "/volumes/create", {"Name": "plain"})
        self.assertEqual(self.probe.ask("inspect_volume", volume="plain"), {"driver": "local", "plain": True})
        lax = {
            "User is not set": {},
            "CapDrop is [], not ALL": {},
            "SecurityOpt lacks no-new-privileges": {},
            "SecurityOpt has no seccomp profile": {},
            "SecurityOpt has \"seccomp=unconfined\"": {"SecurityOpt": ["seccomp=unconfined"]},
            "SecurityOpt has another seccomp profile": {"SecurityOpt": ["seccomp={\"defaultAction\":\"SCMP_ACT_ALLOW\"}"]},
            "Privileged is true": {"Privileged": True},
            "CapAdd has \"SYS_ADMIN\"": {"CapAdd": ["SYS_ADMIN"]},
            "NetworkMode is \"host\"": {"NetworkMode": "host"},
            "PidMode is \"host\"": {"PidMode": "host"},
            "IpcMode is \"host\"": {"IpcMode": "host"},
            "UTSMode is \"host\"": {"UTSMode": "host"},
            "UsernsMode is \"host\"": {"UsernsMode": "host"},
            "Devices has \"/dev/null\"": {"Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/x",
                                                       "CgroupPermissions": "r"}]},
            "DeviceCgroupRules has \"c 1:3 r\"": {"DeviceCgroupRules": ["c 1:3 r"]},
            "Mounts at /x has \"/var/run/docker.sock\"": {"Binds": ["/var/run/docker.sock:/x"]},
            "Mounts at /y has \"/\"": {"Mounts": [{"Type": "bind", "Source": "/", "Target": "/y"}]},
            "Mounts at /z has propagation": {"Mounts": [{"Type": "bind", "Source": "/tmp", "Target": "/z",
                                                         "BindOptions": {"Propagation": "rslave"}}]},
            "Mounts at /v has the volume \"smuggler\"": {"Binds": ["smuggler:/v"]},
            "Sysctls has kernel.msgmax=100": {"Sysctls": {"kernel.msgmax": "100"}},
            "GroupAdd has \"100\"": {"GroupAdd": ["100"]},
            "MaskedPaths lacks /proc/kcore": {"MaskedPaths": [], "ReadonlyPaths": []},
            "ReadonlyPaths lacks /proc/sys": {"MaskedPaths": [], "ReadonlyPaths": []},
        }
        for words, host_config in lax.items():
            container = self.engine.request("POST", "/containers/create", {
                "Image": "busybox:test", "Cmd": ["true"], "HostConfig": {"NetworkMode": "none"} | host_config})["Id"]
            problems = self.inspect(container)["problems"]
            self.assertTrue(any(problem.startswith(words) for problem in problems), f"{words}: {problems}")
        sealed = self.engine.request("POST", "/containers/create", {
            "Image": "busybox:test", "Cmd": ["true"], "User": USER,
            "HostConfig": {"NetworkMode": "none", "CapDrop": ["all"],
                           "SecurityOpt": ["no-new-privileges:true", f"seccomp={json.dumps(json.loads(PROFILE), indent=1)}"]}})["Id"]
        self.assertEqual(self.inspect(sealed)["problems"], [])


class WithBridge(WithEngine):
    arguments = {"bridge": True}

    def test_connect_and_disconnect_are_told(self):
        self.probe.begin("events")
        self.probe.wait_event("resync")
        container = self.run_container()
        self.probe.ask("disconnect", network="none", container=container)
        self.probe.ask("connect", network="bridge", container=container)
        told = self.probe.wait_event("connect", container=container, network="bridge")
        self.assertEqual(told["network"], "bridge")
        state = self.inspect(container)
        self.assertEqual(state["networks"], ["bridge"])
        self.assertTrue(any("NetworkSettings.Networks has \"bridge\"" in problem for problem in state["problems"]))
        told = self.probe.ask("exec", container=container, command=["ls", "/sys/class/net"])
        self.assertIn("eth0", told["stdout"])


class Told(WithEngine):
    def test_events_of_a_life(self):
        self.probe.begin("events")
        self.probe.wait_event("resync")
        container = self.run_container(name="told")
        self.probe.ask("kill", container=container, signal="KILL")
        self.probe.wait_event("die", container=container)
        self.assertEqual(self.inspect(container)["exit_code"], 137)
        self.probe.ask("remove", container=container)
        self.probe.wait_event("destroy", container=container)
        self.assertEqual([event["event"] for event in self.probe.events if event.get("name") == "told"],
                         ["create", "start", "die", "destroy"])

    def restarted(self, end):
        self.probe.begin("events")
        self.probe.wait_event("resync")
        container = self.run_container()
        waiting = self.probe.begin("wait", container=container)
        end()
        self.probe.wait_event("lost")
        seen = len(self.probe.events)
        try:  # An engine that stops its containers in order may still tell their end.
            self.assertEqual(self.probe.end(waiting), 7)
            self.assertEqual(end, self.engine.stop)
        except Refused as refused:
            self.assertEqual(refused.reason, "engine_unavailable")
        self.engine.start()
        self.probe.wait_event("resync", after=seen)
        new = self.run_container()
        self.probe.wait_event("start", after=seen, container=new)
        started = [event for event in self.probe.events if event["event"] == "start"]
        self.assertEqual(len(started), len({event["container"] for event in started}), "told twice")
        return container

    def test_restarted_in_order(self):
        self.assertFalse(self.inspect(self.restarted(self.engine.stop))["running"])

    def test_restarted_after_its_death(self):
        self.assertFalse(self.inspect(self.restarted(self.engine.kill))["running"])

    def test_is_not_there(self):
        self.engine.stop()
        self.addCleanup(lambda: self.engine.process.poll() is None or self.engine.start())
        with self.assertRaisesRegex(Refused, "start it with `sudo systemctl start docker`"):
            self.inspect("any")
        self.engine.start()
        self.probe.ask("negotiate")


class LiveRestore(WithEngine):
    arguments = {"live_restore": True}

    def test_containers_live_on(self):
        self.assertTrue(self.told["live_restore"])
        self.probe.begin("events")
        self.probe.wait_event("resync")
        container = self.run_container()
        before = self.inspect(container)
        self.engine.kill()
        self.probe.wait_event("lost")
        seen = len(self.probe.events)
        self.engine.start()
        self.probe.wait_event("resync", after=seen)
        after = self.inspect(container)
        for field in ("running", "pid", "started_at"):
            self.assertEqual(after[field], before[field])


if __name__ == "__main__":
    unittest.main()
