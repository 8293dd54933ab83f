"""A container engine of the test's own: Debian's dockerd, started by hand as root.

Found out on a machine with cgroup v1 and nf_tables, in `unshare --pid --mount --net` with nobody's help:

- dockerd starts its own containerd below --exec-root, so nothing of the system's service is used or touched. Storage is overlay2
  wherever the folder's file system carries it (ext4 here), else dockerd takes vfs by itself.
- cgroup v1 works with the driver cgroupfs; --cgroup-parent gives every engine a parent of its own in each hierarchy, which the
  engine never removes.
- --bridge=none and --iptables=false need nothing of the network. With a bridge (docker0, in the test's own network namespace)
  --iptables=false still works.
- dockerd tells READY=1 to $NOTIFY_SOCKET once its socket is served; containerd does not get that variable.
- When dockerd is killed, containerd dies with it, but shims and containers live on; the next dockerd of the same folders ends
  them, or keeps them with live-restore.
- Shims listen in /run/containerd/s whatever the engine's folders are, under names made of the container's id; one that is killed
  leaves its socket there. The folders /run/containerd and /run/docker stay, empty.
"""

import http.client
import io
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time

import processes

READY_TIMEOUT_SECONDS = 180
STOP_TIMEOUT_SECONDS = 60
BUSYBOX = pathlib.Path("/usr/bin/busybox")
CGROUPS = pathlib.Path("/sys/fs/cgroup")
TEST_UID = 1000
# All that is in it, for the path of a socket is short.
PREFIX = "engine-"


class Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout=READY_TIMEOUT_SECONDS):
        super().__init__("engine", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Engine:
    """A running dockerd. `with Engine() as engine:`; afterwards nothing of it is left."""

    def __init__(self, *arguments, bridge=False, live_restore=False):
        processes.adopt_orphans()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))
        self.socket = self.folder / "docker.sock"
        self.log = self.folder / "log"
        self._cgroup = self.folder.name
        self._arguments = [*arguments, *([] if bridge else ["--bridge=none"]),
                           *(["--live-restore"] if live_restore else [])]
        self.process = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        """Returns when it serves."""
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with ready:
            ready.bind(str(self.folder / "ready"))
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    ["/usr/sbin/dockerd", "--data-root", self.folder / "data", "--exec-root", self.folder / "exec",
                     "--pidfile", self.folder / "pid", "-H", f"unix://{self.socket}", "--iptables=false",
                     "--ip-forward=false", "--userland-proxy=false", f"--cgroup-parent=/{self._cgroup}",
                     "--config-file", self._config(), "-l", "warn", *self._arguments],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    env=os.environ | {"NOTIFY_SOCKET": str(self.folder / "ready")})
            self._wait_ready(ready)
        (self.folder / "ready").unlink()
        self.request("GET", "/_ping")

    def _config(self):
        file = self.folder / "daemon.json"
        file.write_text("{}")
        return file

    def _wait_ready(self, ready):
        pid = os.pidfd_open(self.process.pid)
        try:
            deadline = time.monotonic() + READY_TIMEOUT_SECONDS
            while True:
                readable, _, _ = select.select([ready, pid], [], [], max(0, deadline - time.monotonic()))
                if ready in readable and b"READY=1" in ready.recv(4096).split(b"\n"):
                    return
                if pid in readable or not readable:
                    raise AssertionError(f"dockerd did not start:\n{self.log.read_text(errors='replace')}")
        finally:
            os.close(pid)

    def stop(self):
        """In order: containers are stopped too, unless it was started with live_restore."""
        self.process.terminate()
        self.process.wait(STOP_TIMEOUT_SECONDS)

    def kill(self):
        """Only the engine's process."""
        containerd = int((self.folder / "exec/containerd/containerd.pid").read_text())
        handle = os.pidfd_open(containerd)
        self.process.kill()
        self.process.wait(STOP_TIMEOUT_SECONDS)
        # It dies too. The next dockerd would wait for it, and also for a zombie of that number.
        _wait_end({containerd: handle})

    def close(self):
        if self.process and self.process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
        sockets = self._shim_sockets()
        self._end_processes()
        for path in sockets:
            pathlib.Path(path).unlink(missing_ok=True)
        self._unmount()
        self._remove_cgroups()
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def request(self, method, target, body=None, headers=None):
        """The answer's body, the last line of it if it is JSON; what is no success is an exception."""
        connection = Connection(self.socket)
        try:
            if isinstance(body, dict):
                body, headers = json.dumps(body), {"Content-Type": "application/json"}
            try:
                connection.request(method, target, body, headers or {})
            except BrokenPipeError:
                pass  # it has answered before it has heard everything
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise AssertionError(f"{method} {target}: {answer.status} {text.decode(errors='replace')}")
        is_json = answer.getheader("Content-Type", "").startswith("application/json")
        return json.loads(text.splitlines()[-1]) if is_json else text

    def import_busybox(self, name="busybox:test"):
        """An image with nothing but a static busybox and two users."""
        repository, tag = name.split(":")
        return self.request("POST", f"/images/create?fromSrc=-&repo={repository}&tag={tag}", busybox_tar(),
                            {"Content-Type": "application/x-tar"})

    def pids(self):
        """Of dockerd, and of what serves it while no container runs."""
        return {self.process.pid, int((self.folder / "exec/containerd/containerd.pid").read_text())}

    def containers(self):
        return {each["Id"] for each in self.request("GET", "/containers/json?all=1")}

    def _processes(self):
        """Those of its containers, and its shims, by what only they have."""
        found = set()
        for folder in self._cgroups():
            try:
                found |= {int(pid) for pid in (folder / "cgroup.procs").read_text().split() if pid != "0"}
            except OSError:
                pass  # its shim has removed it
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes()
                program = os.path.basename(os.readlink(entry / "exe"))
            except OSError:
                continue
            if str(self.folder).encode() in command and program.startswith(("containerd", "runc")):
                found.add(int(entry.name))
        return found

    def _shim_sockets(self):
        files = self.folder.glob("exec/containerd/daemon/io.containerd.runtime.v2.task/*/*/address")
        found = []
        for file in files:
            try:
                found.append(file.read_text().removeprefix("unix://"))
            except OSError:
                pass  # its shim has removed it
        return found

    def _end_processes(self):
        handles = {}
        for pid in self._processes():
            try:
                handles[pid] = os.pidfd_open(pid)
                signal.pidfd_send_signal(handles[pid], signal.SIGKILL)
            except ProcessLookupError:
                pass
        _wait_end(handles)
        # Of those that ended by themselves.
        for pid in processes.all_pids():
            if processes.parent(pid) == os.getpid() and _is_dead_helper(pid):
                os.waitpid(pid, 0)

    def _unmount(self):
        mounts = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
        for path in sorted((path for path in mounts if path.startswith(str(self.folder))), reverse=True):
            subprocess.run(["umount", "-l", path], check=True)

    def _cgroups(self):
        """Its own, innermost last. Not by glob(), which minds what goes while it looks."""
        return [pathlib.Path(folder) for hierarchy in [CGROUPS, *CGROUPS.iterdir()]
                for folder, _, _ in os.walk(hierarchy / self._cgroup)]

    def _remove_cgroups(self):
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while left := self._cgroups():
            for path in reversed(left):
                try:
                    path.rmdir()
                except OSError:
                    if time.monotonic() > deadline:
                        raise
            time.sleep(0.01)


def _wait_end(handles):
    """Of the processes {pid: pidfd}; those that are our children by then are buried too."""
    for handle in handles.values():
        select.select([handle], [], [], STOP_TIMEOUT_SECONDS)
        os.close(handle)
    for pid in handles:
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass  # a shim has buried it


def _is_dead_helper(pid):
    try:
        name, rest = pathlib.Path(f"/proc/{pid}/stat").read_text().split("(", 1)[1].rsplit(") ", 1)
    except OSError:
        return False
    return rest.startswith("Z") and name.startswith(("containerd", "runc"))


def busybox_tar():
    """A root folder as a tar, with `busybox` under each of its names."""
    applets = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout.split()
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, mode in (("bin", 0o755), ("etc", 0o755), ("home", 0o755), ("mounted", 0o755), ("tmp", 0o1777)):
            tar.addfile(_entry(name, tarfile.DIRTYPE, mode))
        binary = BUSYBOX.read_bytes()
        entry = _entry("bin/busybox", tarfile.REGTYPE, 0o755)
        entry.size = len(binary)
        tar.addfile(entry, io.BytesIO(binary))
        for applet in applets:
            link = _entry(f"bin/{applet}", tarfile.SYMTYPE, 0o777)
            link.linkname = "busybox"
            if applet != "busybox":
                tar.addfile(link)
        passwd = f"root:x:0:0:root:/:/bin/sh\nuser:x:{TEST_UID}:{TEST_UID}:user:/home:/bin/sh\n".encode()
        entry = _entry("etc/passwd", tarfile.REGTYPE, 0o644)
        entry.size = len(passwd)
        tar.addfile(entry, io.BytesIO(passwd))
    return file.getvalue()


def _entry(name, kind, mode):
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    return entry
