"""Podman's engine for tests: `podman system service`, with all of its folders in one.

Found out with Podman 4.3 and cgroup v1: the service ends no container when it ends, and holds no state in memory; an image that
is imported gets no tag unless its name has one; `--tmpdir` is where its own records of what runs lie, so that another folder means
that nothing of the system's is seen; what is imported stays in $TMPDIR as well (api_load.tar).
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import engine
import processes


class Podman(engine.Engine):
    """As Engine, which it is for whoever speaks to its socket."""

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*self.command(), "system", "service", "--time", "0", f"unix://{self.socket}"],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                            env=self.environment())
        deadline = time.monotonic() + engine.READY_TIMEOUT_SECONDS
        while not self._serves():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"podman did not start:\n{self.log.read_text(errors='replace')}")
            time.sleep(0.02)

    def _serves(self):
        try:
            self.request("GET", "/_ping")
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def command(self):
        return ["podman", "--root", str(self.folder / "data"), "--runroot", str(self.folder / "run"),
                "--tmpdir", str(self.folder / "tmp"), "--cgroup-manager", "cgroupfs", "--events-backend", "file",
                "--log-level", "warn"]

    def environment(self):
        return os.environ | {"TMPDIR": str(self.folder)}

    def podman(self, *arguments, check=True):
        return subprocess.run([*self.command(), *arguments], check=check, capture_output=True, text=True,
                              env=self.environment())

    def pids(self):
        return {self.process.pid}

    def close(self):
        self.podman("rm", "-fa", "-t", "0", check=False)
        self.process.terminate()
        self.process.wait(engine.STOP_TIMEOUT_SECONDS)
        self._wait_for_helpers()
        self._unmount()
        shutil.rmtree(self.folder)

    def _wait_for_helpers(self):
        """Those that clean up behind a container, in the folder as well."""
        deadline = time.monotonic() + engine.STOP_TIMEOUT_SECONDS
        while any(str(self.folder) in processes.describe(pid) for pid in processes.all_pids()):
            if time.monotonic() > deadline:
                raise AssertionError("something of Podman's still runs")
            time.sleep(0.02)

    def request(self, method, target, body=None, headers=None):
        return super().request(method, target.replace("&tag=", ":"), body, headers)


class Rootless(Podman):
    """An ordinary user's. Who that is, and which uids are his as well, only his Podman sees: in a mount namespace of its own."""

    FIRST_UID, UIDS = 200000, 65536

    def __init__(self, uid):
        self.uid = uid
        super().__init__()

    def start(self):
        for name in ("etc", "home", "xdg"):
            (self.folder / name).mkdir(mode=0o700)
        for name, line in (("passwd", f"someone:x:{self.uid}:{self.uid}::{self.folder}/home:/bin/sh"),
                           ("group", f"someone:x:{self.uid}:"),
                           ("subuid", f"someone:{self.FIRST_UID}:{self.UIDS}"), ("subgid", f"someone:{self.FIRST_UID}:{self.UIDS}")):
            file = self.folder / "etc" / name
            before = pathlib.Path("/etc", name).read_text() if name in ("passwd", "group") else ""
            file.write_text(before + line + "\n")
            file.chmod(0o644)
        for path in (self.folder, self.folder / "home", self.folder / "xdg"):
            os.chown(path, self.uid, self.uid)
        super().start()

    def command(self):
        binds = "; ".join(f"mount --bind {self.folder}/etc/{name} /etc/{name}" for name in ("passwd", "group", "subuid", "subgid"))
        return ["unshare", "--mount", "sh", "-ec", f'{binds}; cd /; exec setpriv --reuid {self.uid} --regid {self.uid} '
                '--clear-groups "$@"', "sh", *super().command()]

    def environment(self):
        keep = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
        return keep | {"HOME": f"{self.folder}/home", "XDG_RUNTIME_DIR": f"{self.folder}/xdg",
                       "TMPDIR": str(self.folder)}

    def pids(self):
        """With the process that keeps the user's namespaces."""
        files = (os.path.join(place, "pause.pid") for place, _, names in os.walk(self.folder) if "pause.pid" in names)
        return super().pids() | {int(pathlib.Path(file).read_text()) for file in files}

    def _wait_for_helpers(self):
        # What keeps the user's namespaces, which looks like the service that has made it; there may be a successor.
        keepers = {pid for pid in processes.all_pids() if str(self.socket) in processes.describe(pid)}
        processes.kill(keepers | self.pids() - {self.process.pid})
        super()._wait_for_helpers()
        processes.reap_orphans(set())
