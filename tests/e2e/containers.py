"""What tests of sessions in containers have in common: a real engine, and a daemon that is told of it."""

import os
import pathlib
import select
import unittest

import static_init

static_init.use()

import harness
import images
from engine import CGROUPS, Engine
from harness import Flavour
from test_sessions import Daemon

IMAGE = "tools:test"
LABEL = "org.sallyport.session"


def share_an_engine(**arguments):
    """For setUpModule()."""
    Containers.shared = Engine(**arguments)
    unittest.addModuleCleanup(Containers.shared.close)
    images.import_image(Containers.shared, IMAGE)


class Containers(Daemon):
    flavour = Flavour.AS_ROOT
    shared = None  # an engine for all tests of a file

    def setUp(self):
        self.engine = self.make_engine()
        self.volumes_before = self.engine.request("GET", "/volumes")["Volumes"] or []
        super().setUp()

    def make_engine(self):
        return self.shared

    def start_daemon(self, *options):
        return super().start_daemon("--engine", self.engine.socket, *options)

    def tearDown(self):
        super().tearDown()
        if self.engine.process.poll() is None:
            self.assertEqual(self.engine.containers(), set())
            self.assertEqual(self.engine.request("GET", "/volumes")["Volumes"] or [], self.volumes_before)
        self.assertEqual(self.session_folders(), [])

    def make_stage(self):
        stage = super().make_stage()
        pids = stage.forge.pids
        stage.forge.pids = lambda: {*pids(), *(self.engine.pids() if self.engine.process.poll() is None else ())}
        return stage

    def session_folders(self):
        folder = self.state / "containers"
        return list(folder.iterdir()) if folder.exists() else []

    def new(self, *options, image=IMAGE):
        return super().new("--image", image, *options)

    def inspect(self, name):
        return self.engine.request("GET", f"/containers/{name}/json")

    def both(self, session="agent"):
        """What the engine says of (the image's container, the pause)."""
        short = self.status(session)["id"][:12]
        return self.inspect(f"sallyport-{short}"), self.inspect(f"sallyport-{short}-pause")

    def wait_for_end(self, session="agent"):
        self.daemon.wait_for(lambda: self.status(session)["state"] == "ended", "the session's end")
        return self.status(session)["summary"]

    def wait_for_no_container(self):
        self.daemon.wait_for(lambda: self.engine.containers() == set(), "the containers' end")

    def assert_nothing_is_left(self):
        self.assertEqual(self.sessions(), [])
        self.assertEqual(self.engine.containers(), set())
        self.assertEqual(self.session_folders(), [])

    def refused_new(self, image, *words):
        """No session comes of it."""
        outcome = self.assert_failed(self.sallyport("new", "agent", "--image", image))
        self.assert_shows(outcome, *words)
        self.assert_nothing_is_left()
        return outcome


def proc_status(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, value in (line.split(":", 1) for line in lines)}


def cgroup_value(pid, controller, name):
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return (CGROUPS / controllers / path.lstrip("/") / name).read_text().strip()
    return None


def wait_for_process(handle):
    """For the end of the process that the pidfd is of; closes it."""
    readable, _, _ = select.select([handle], [], [], harness.RUN_TIMEOUT_SECONDS)
    os.close(handle)
    if not readable:
        raise AssertionError("it still runs")
