#!/usr/bin/python3
"""packaging/seccomp.json in a real engine: what a container under it cannot do, and that programs still work."""

import json
import pathlib
import signal
import unittest

import engine as engine_module
from engine import Engine

PROFILE = pathlib.Path(__file__).parents[2] / "packaging/seccomp.json"
USER = f"{engine_module.TEST_UID}:{engine_module.TEST_UID}"

# Runs in the container with the host's Python. Tells as JSON what came of each call: "worked", the errno, or "signal N".
INSIDE = r'''
import ctypes, errno, fcntl, json, mmap, os, pty, socket, subprocess, sys, threading

libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == "aarch64"
told = {}

def attempt(name, action):
    # In a child: some are answered by a deadly signal.
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told[name] = "worked" if code == 0 else errno.errorcode[code] if code > 0 else f"signal {-code}"

def call(*arguments):
    def action():
        if libc.syscall(*(ctypes.c_long(argument) for argument in arguments)) < 0:
            raise OSError(ctypes.get_errno(), "")
    return action

def machine_code(code):
    def action():
        memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        memory.write(code)
        ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
    return action

def terminal(request):
    return lambda: fcntl.ioctl(pty.openpty()[1], request, b"\0" * 8)

garbage = 0x7700000000  # in the upper half of a register, which the kernel does not read
new = {"user": 0x10000000, "mount": 0x20000, "network": 0x40000000, "pid": 0x20000000, "ipc": 0x8000000,
       "uts": 0x4000000, "cgroup": 0x2000000}

for family, number in {"VSOCK": 40, "PACKET": 17, "XDP": 44, "ALG": 38}.items():
    attempt(f"AF_{family}", call(198 if arm else 41, number, 3, 0))
    attempt(f"AF_{family} with garbage", call(198 if arm else 41, garbage + number, 3, 0))
for name, arguments in {"SOCK_RAW": (2, 3, 1), "SOCK_RAW v6": (10, 3, 58), "SOCK_PACKET": (2, 10, 3), "ping": (2, 2, 1), "ping v6": (10, 2, 58),
                        "MPTCP": (2, 1, 262), "MPTCP with garbage": (2, 1, garbage + 262), "SCTP": (2, 1, 132),
                        "netlink audit": (16, 3, 9)}.items():
    attempt(name, call(198 if arm else 41, *arguments))
attempt("io_uring_setup", call(425, 8, 0))
attempt("userfaultfd", call(282 if arm else 323, 1))
attempt("bpf", call(280 if arm else 321, 0, 0, 0))
attempt("keyctl", call(219 if arm else 250, 0, -3, 1))
attempt("perf_event_open", call(241 if arm else 298, 0, 0, -1, -1, 0))
attempt("ptrace", call(117 if arm else 101, 0x4206, 1, 0, 0))
attempt("mount", call(40 if arm else 165, 0, 0, 0, 0, 0))
attempt("setns", call(268 if arm else 308, -1, 0))
attempt("move_pages", call(239 if arm else 279, 0, 0, 0, 0, 0, 0))
attempt("personality", call(92 if arm else 135, 0x40000))
for name, flag in new.items():
    attempt(f"unshare {name}", call(97 if arm else 272, flag))
    attempt(f"clone {name}", call(220 if arm else 56, flag | 17, 0, 0, 0, 0))
attempt("unshare time", call(97 if arm else 272, 0x80))
attempt("clone3", call(435, 0, 0))
for name, request in {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541c, "TIOCSETD": 0x5423}.items():
    attempt(name, terminal(request))
    attempt(f"{name} with garbage", call(29 if arm else 16, 0, garbage + request, 0))
if not arm:
    attempt("x32", call(0x40000000 + 39))
    attempt("int 0x80", machine_code(b"\xb8\x14\0\0\0\xcd\x80\xc3"))  # mov eax, 20 (getpid); int 0x80; ret

def threads():
    seen = []
    each = [threading.Thread(target=seen.append, args=(i,)) for i in range(8)]
    [thread.start() for thread in each]
    [thread.join() for thread in each]
    assert len(seen) == 8

def sockets():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    server.accept()[0].sendall(b"x")
    assert client.recv(1) == b"x"
    a, b = socket.socketpair()
    a.sendall(b"y")
    assert b.recv(1) == b"y"
    socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
    assert socket.if_nametoindex("lo") == 1 and socket.getaddrinfo("localhost", 80)

attempt("fork and exec", lambda: subprocess.run(["/bin/busybox", "sh", "-c", "echo x | cat | wc -l; (exit 0) & wait"], check=True, stdout=subprocess.DEVNULL))
attempt("threads", threads)
attempt("sockets", sockets)
attempt("a terminal", lambda: os.get_terminal_size(pty.openpty()[1]))
attempt("the question for the personality", call(92 if arm else 135, 0xffffffff))
attempt("unshare files", call(97 if arm else 272, 0x400))
print(json.dumps(told))
'''

REFUSALS = {
    "EAFNOSUPPORT": [name + garbage for name in ("AF_VSOCK", "AF_PACKET", "AF_XDP", "AF_ALG") for garbage in ("", " with garbage")],
    "EPROTONOSUPPORT": ["MPTCP", "MPTCP with garbage", "SCTP", "netlink audit"],
    "ENOSYS": ["clone3"],
    "EPERM": ["SOCK_RAW", "SOCK_RAW v6", "SOCK_PACKET", "ping", "ping v6", "io_uring_setup", "userfaultfd", "bpf", "keyctl",
              "perf_event_open", "ptrace", "mount", "setns", "move_pages", "personality", "unshare time",
              *(f"{call} {name}" for call in ("unshare", "clone")
                for name in ("user", "mount", "network", "pid", "ipc", "uts", "cgroup")),
              *(name + garbage for name in ("TIOCSTI", "TIOCLINUX", "TIOCSETD") for garbage in ("", " with garbage"))],
    f"signal {int(signal.SIGSYS)}": ["x32", "int 0x80"],
    "worked": ["fork and exec", "threads", "sockets", "a terminal", "the question for the personality", "unshare files"],
}


class Seccomp(unittest.TestCase):
    def told(self, engine, profile):
        container = engine.request("POST", "/containers/create", {
            "Image": "busybox:test", "User": USER, "Cmd": ["/usr/bin/python3", "-c", INSIDE], "Tty": True,
            "HostConfig": {
                "NetworkMode": "none", "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges", f"seccomp={profile}"],
                "Binds": [f"{path}:{path}:ro" for path in ("/usr", "/lib", "/lib64", "/etc") if pathlib.Path(path).exists()]}})["Id"]
        engine.request("POST", f"/containers/{container}/start")
        code = engine.request("POST", f"/containers/{container}/wait")["StatusCode"]
        log = engine.request("GET", f"/containers/{container}/logs?stdout=1&stderr=1").decode()
        self.assertEqual(code, 0, log)
        return json.loads(log)

    def test_refuses_and_lets_programs_work(self):
        expected = {name: what for what, names in REFUSALS.items() for name in names}
        with Engine() as engine:
            engine.import_busybox()
            told = self.told(engine, PROFILE.read_text())
        self.assertEqual(told, {name: what for name, what in expected.items() if name in told})
        self.assertLessEqual(expected.keys() - told.keys(), {"x32", "int 0x80"})


if __name__ == "__main__":
    unittest.main()
