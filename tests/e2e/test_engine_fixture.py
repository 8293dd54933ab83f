#!/usr/bin/python3
"""The engine of the tests leaves nothing. Alone: the folders of engines and their shims' are the machine's."""

import os
import pathlib
import time
import unittest

import processes
from engine import CGROUPS, PREFIX, Engine


class Fixture(unittest.TestCase):
    def test_leaves_nothing(self):
        def state():
            sockets = pathlib.Path("/run/containerd/s")
            return (sorted(name for name in os.listdir("/tmp") if name.startswith(PREFIX)),
                    pathlib.Path("/proc/self/mountinfo").read_text(),
                    sorted(map(str, CGROUPS.glob(f"*/{PREFIX}*"))),
                    sorted(os.listdir(sockets)) if sockets.exists() else [],
                    sorted(name for name in os.listdir("/proc") if name.isdigit()))
        before = state()
        for end in (Engine.stop, Engine.kill):
            with Engine() as docker:
                docker.import_busybox()
                container = docker.request("POST", "/containers/create", {
                    "Image": "busybox:test", "Cmd": ["sleep", "1000"], "HostConfig": {"NetworkMode": "none"}})["Id"]
                docker.request("POST", f"/containers/{container}/start")
                end(docker)
            deadline = time.monotonic() + 60
            while state() != before and time.monotonic() < deadline:
                processes.reap_orphans(set())  # a shim takes a moment to end
            self.assertEqual(state(), before)


if __name__ == "__main__":
    unittest.main()
