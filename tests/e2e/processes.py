"""What runs, and what a run has left behind."""

import ctypes
import os
import pathlib
import select
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
# Dying processes, and the namespaces they hold, may take a moment: the kernel's, or that of an engine's helper.
SETTLE_SECONDS = 60
NOBODY_AT_ALL = -1
# Programs of ours that a session runs beside the warden.
CONFINED = ("sallyport-gate", "sallyport-vault")
ALONE = os.environ.get("SALLYPORT_TEST_ALONE") == "1"


def adopt_orphans():
    """From now on every orphan among our descendants becomes our child, so that none can hide behind init."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def _stat(pid):
    """(state, parent), or None when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, parent = text.rsplit(")", 1)[1].split()[:2]
    return state, int(parent)


def parent(pid):
    stat = _stat(pid)
    return stat[1] if stat else None


def is_stopped(pid):
    """By a signal: what a tracer has stopped is not meant."""
    stat = _stat(pid)
    return stat is not None and stat[0] == "T"


def children(pid):
    return [child for child in all_pids() if (stat := _stat(child)) and stat[1] == pid and stat[0] != "Z"]


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(pid, without=()):
    """Living descendants of `pid`, leaving out the trees below `without`."""
    children = {}
    for candidate in all_pids():
        stat = _stat(candidate)
        if stat and stat[0] != "Z":
            children.setdefault(stat[1], []).append(candidate)
    result, todo = [], [pid]
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in without:
                result.append(child)
                todo.append(child)
    return result


def reap_orphans(known):
    """Collects dead children that nobody waits for; `known` are those that somebody does."""
    for pid in all_pids():
        stat = _stat(pid)
        if stat and stat[0] == "Z" and stat[1] == os.getpid() and pid not in known:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def stop(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            pass


def kill(pids):
    """And waits for their ends: what they held is free then."""
    ends = []
    for pid in pids:
        try:
            ends.append(os.pidfd_open(pid))
            signal.pidfd_send_signal(ends[-1], signal.SIGKILL)
        except ProcessLookupError:
            pass
    for end in ends:
        poll = select.poll()
        poll.register(end, select.POLLIN)
        poll.poll()
        os.close(end)


def executable(pid):
    """The program's name as the kernel knows it, not as the process calls itself."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    except OSError:
        return ""


def describe(pid):
    try:
        return f"{pid} {pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().replace(bytes(1), b' ').decode()}"
    except OSError:
        return str(pid)


def uid_of(pid):
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


class Snapshot:
    """The machine before a run. `left_over()` names what the run has left: processes, mounts, sockets, files."""

    def __init__(self, uid, folders, mark):
        """`folders`: where the run's temporary files would go; `mark`: part of all its paths; `uid`: its user.

        A user's traces tell something only when the harness runs as somebody else.
        """
        self._uid = uid if uid != os.getuid() else NOBODY_AT_ALL
        self._folders = [pathlib.Path(f) for f in folders]
        self._mark = mark
        self._before = self._state()

    def left_over(self, without_pids):
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            reap_orphans(without_pids)
            found = self._found(without_pids)
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.05)

    def _found(self, without_pids):
        found = [f"process {describe(pid)}" for pid in descendants(os.getpid(), without_pids)]
        after = self._state()
        for kind, before in self._before.items():
            found += [f"{kind} {item}" for item in sorted(after[kind] - before)]
        return found

    def _state(self):
        # What has our program's name belongs to this test only when nobody else tests on this machine.
        ours = (self._mark, "sallyport") if ALONE else (self._mark,)
        mounts = {line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                  if any(word in line for word in ours)}
        unix = {line.split()[-1] for line in pathlib.Path("/proc/net/unix").read_text().splitlines()
                if any(word in line for word in ours)}
        files = set()
        for folder in self._folders:
            # Unlike rglob(), it does not mind what goes while it looks.
            files |= {os.path.join(place, name) for place, *names in os.walk(folder) for name in sum(names, [])}
        for shared in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/user", "/run/lock"):
            files |= set(_entries_of(shared, self._uid))
        # A namespace lives as long as a process is in it or a mount holds it, so these two stand for it as well.
        running = {str(pid) for pid in all_pids() if uid_of(pid) == self._uid and (_stat(pid) or "Z")[0] != "Z"}
        if ALONE:
            namespaces = {f"{kind} of {describe(pid)}" for pid in all_pids() for kind in _namespaces(pid)}
            routes = set(pathlib.Path("/proc/net/route").read_text().splitlines())
        else:
            namespaces, routes = set(), set()
        return {"namespace": namespaces, "route": routes, "mount": mounts, "unix socket": unix, "file": files, "process of the test's uid": running,
                "listener": _listeners(self._uid)}


def _entries_of(folder, uid):
    try:
        with os.scandir(folder) as entries:
            return [e.path for e in entries if _owner(e) == uid or (ALONE and e.name.startswith("sallyport"))]
    except OSError:
        return []


def _owner(entry):
    try:
        return entry.stat(follow_symlinks=False).st_uid
    except FileNotFoundError:  # another test's, gone since it was listed
        return None


def _namespaces(pid):
    """Of those kinds that we make; that of the test itself is not one."""
    found = set()
    for kind in ("net", "user", "mnt", "pid"):
        try:
            name = os.readlink(f"/proc/{pid}/ns/{kind}")
        except OSError:
            continue
        if name != os.readlink(f"/proc/self/ns/{kind}"):
            found.add(name)
    return found


def _listeners(uid):
    listening = "0A"
    found = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == listening and int(fields[7]) == uid:
                found.add(fields[1])
    return found


def peak_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise AssertionError(f"no VmHWM of {pid}")


def confined_programs(pids):
    """{program: pid} of those of CONFINED, by the kernel's name: /proc/PID/exe of a confined process needs root."""
    found = {}
    for pid in pids:
        try:
            comm = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
        found |= {program: pid for program in CONFINED if comm == program[:15]}
    return found
