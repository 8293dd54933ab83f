#!/usr/bin/python3
"""Nothing that runs inside reaches anything outside: a hostile probe tries every way, decoys outside wait for it."""

import json
import os
import socket
import subprocess
import threading

import harness
import processes
from harness import E2E, in_both_flavours

BANNER = b"DECOY"

# Addresses of every kind that must lead nowhere.
STRANGERS = ["8.8.8.8", "1.1.1.1", "10.0.0.1", "172.17.0.1", "192.168.0.1", "169.254.169.254", "100.100.100.200",
             "198.18.0.1", "198.19.255.254", "224.0.0.1", "255.255.255.255", "240.0.0.1", "0.0.0.0",
             "2001:4860:4860::8888", "fd00::1", "fe80::1", "ff02::1", "64:ff9b::808:808", "::ffff:8.8.8.8"]

PROBE = r'''#!/usr/bin/python3
"""Prints one JSON object: what each attempt came to. "reached" is the only bad word."""
import concurrent.futures, ctypes, fcntl, json, os, socket, stat, struct, sys
task = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "task.json")))
libc = ctypes.CDLL(None, use_errno=True)
results = {}

def attempt(name, action):
    try:
        results[name] = action() or "no answer"
    except OSError as error:
        results[name] = f"refused: {error.__class__.__name__} {error.errno}"

def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET

def verdict(answer):
    return "reached" if answer.startswith(b"DECOY") else f"answer {answer[:20]!r}" if answer else "closed"

def tcp(address, port):
    with socket.socket(family(address), socket.SOCK_STREAM) as s:
        s.settimeout(20)
        s.connect((address, port))
        # A message of DNS that is none, so that nobody waits for the rest of it.
        s.sendall(b"\0\1x" if port == 53 else b"GET / HTTP/1.0\r\n\r\n")
        return verdict(s.recv(100))

def udp(address, port):
    with socket.socket(family(address), socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.sendto(b"hello", (address, port))
        s.sendto(b"hello", (address, port))
        return verdict(s.recv(100))

def ping(address):
    v6 = ":" in address
    protocol = socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP
    with socket.socket(family(address), socket.SOCK_DGRAM, protocol) as s:
        s.settimeout(1)
        s.sendto(struct.pack("!BBHHH", 128 if v6 else 8, 0, 0, 1, 1), (address, 0))
        s.recv(100)
        return "reached"

def unix(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        s.connect(path)
        return verdict(s.recv(100))

def make(*arguments):
    def action():
        socket.socket(*arguments).close()
        return "reached"
    return action

def syscall(number, *arguments):
    # In a child: some are answered by a deadly signal.
    def action():
        child = os.fork()
        if child == 0:
            os._exit(0 if libc.syscall(number, *arguments) >= 0 else ctypes.get_errno() & 0xFF or 255)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return "reached" if code == 0 else f"refused: {'errno' if code > 0 else 'signal'} {abs(code)}"
    return action

def write(path):
    def action():
        with open(path, "r+b", buffering=0) as f:
            f.write(f.read(4096) or b"0")
        return "reached"
    return action

# Most of them wait for an answer in vain.
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    for address, port in task["targets"]:
        pool.submit(attempt, f"tcp {address} {port}", lambda a=address, p=port: tcp(a, p))
        pool.submit(attempt, f"udp {address} {port}", lambda a=address, p=port: udp(a, p))
    for address in task["ping"]:
        pool.submit(attempt, f"icmp {address}", lambda a=address: ping(a))
for path in task["unix"]:
    attempt(f"unix {path}", lambda: unix("\0" + path[1:] if path.startswith("@") else path))

AF_PACKET, AF_ALG, AF_VSOCK, AF_XDP = 17, 38, 40, 44
attempt("AF_VSOCK stream", make(AF_VSOCK, socket.SOCK_STREAM))
attempt("AF_VSOCK datagram", make(AF_VSOCK, socket.SOCK_DGRAM))
attempt("AF_PACKET raw", make(AF_PACKET, socket.SOCK_RAW))
attempt("AF_PACKET datagram", make(AF_PACKET, socket.SOCK_DGRAM))
attempt("AF_XDP", make(AF_XDP, socket.SOCK_RAW))
attempt("AF_ALG", make(AF_ALG, socket.SOCK_SEQPACKET))
attempt("raw v4", make(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW))
attempt("raw v6", make(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6))
attempt("MPTCP", make(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt("SCTP", make(socket.AF_INET, socket.SOCK_STREAM, 132))

# x86-64 and arm64 numbers from the kernel's tables; the same on both from 424 on.
arm = os.uname().machine == "aarch64"
buffer = ctypes.create_string_buffer(256)
attempt("io_uring_setup", syscall(425, 8, buffer))
attempt("bpf", syscall(280 if arm else 321, 0, buffer, 128))
attempt("userfaultfd", syscall(282 if arm else 323, 1))
attempt("add_key", syscall(217 if arm else 248, b"user", b"x", b"y", 1, -3))
attempt("keyctl", syscall(219 if arm else 250, 0, -3, 1))
attempt("perf_event_open", syscall(241 if arm else 298, buffer, 0, -1, -1, 0))
attempt("ptrace of process 1", syscall(117 if arm else 101, 0x4206, 1, 0, 0))
if not arm:
    attempt("x32 entry", syscall(0x40000000 + 39))

for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/vm/overcommit_memory",
             "/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/proc/1/oom_score_adj"):
    if os.path.exists(path):
        attempt(f"write {path}", write(path))
attempt("setuid 0", lambda: (os.setuid(0), "reached")[1])

sockets = []
for top in sorted(os.listdir("/")):
    if top in ("proc", "sys", "usr"):
        continue
    for folder, folders, files in os.walk("/" + top):
        for name in files:
            path = os.path.join(folder, name)
            try:
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    sockets.append(path)
            except OSError:
                pass
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
print(json.dumps({"results": results, "sockets": sockets, "environment": dict(os.environ), "uid": os.getuid(),
                  "uid_map": open("/proc/self/uid_map").read().split(), "status": status,
                  "interfaces": [name for _, name in socket.if_nameindex()],
                  "processes": [p for p in os.listdir("/proc") if p.isdigit()]}))
'''


class Decoys:
    """Servers outside that greet with a banner and count whoever comes."""

    def __init__(self):
        self.hits = []
        self._sockets = []
        self.port = None
        self.addresses = ["127.0.0.1", "::1", *_host_addresses()]
        tcp4 = self._tcp(socket.AF_INET, "0.0.0.0", 0)
        self.port = tcp4.getsockname()[1]
        self._udp(socket.AF_INET, "0.0.0.0")
        if socket.has_ipv6:
            try:
                self._tcp(socket.AF_INET6, "::", self.port)
                self._udp(socket.AF_INET6, "::")
            except OSError:  # a machine without IPv6
                pass
        self.abstract = f"@decoy-{os.getpid()}"
        self._unix("\0" + self.abstract[1:])

    def add_unix(self, path):
        self._unix(str(path))
        os.chmod(path, 0o777)
        return str(path)

    def stop(self):
        for server in self._sockets:
            try:
                server.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            server.close()

    def _tcp(self, family, address, port):
        server = socket.socket(family)
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind((address, port))
        self._listen(server, f"tcp {address}")
        return server

    def _unix(self, path):
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        self._listen(server, f"unix {path}")

    def _listen(self, server, name):
        server.listen()
        self._sockets.append(server)

        def serve():
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                self.hits.append(name)
                with peer:
                    peer.sendall(BANNER)
        threading.Thread(target=serve, daemon=True).start()

    def _udp(self, family, address):
        server = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind((address, self.port))
        self._sockets.append(server)

        def serve():
            while True:
                try:
                    data, peer = server.recvfrom(2048)
                except OSError:
                    return
                if not data:  # shutdown() wakes with nothing
                    return
                self.hits.append(f"udp {address}")
                server.sendto(BANNER, peer)
        threading.Thread(target=serve, daemon=True).start()


def _host_addresses():
    done = subprocess.run(["ip", "-json", "address"], capture_output=True, text=True, check=True)
    return [entry["local"] for link in json.loads(done.stdout) for entry in link.get("addr_info", ())
            if entry.get("scope") == "global"]


# The reasons of what only tries to get out.
WAYS_OUT = {"ip_literal", "udp_refused", "icmp_refused", "not_tls", "bad_request", "bad_dns_query", "client_closed",
            "client_timeout"}


@in_both_flavours
class Sealed(E2E):
    def setUp(self):
        super().setUp()
        self.decoys = Decoys()
        self.addCleanup(self.decoys.stop)
        self.stage.put("probe.py", PROBE)

    def tearDown(self):
        # Ours, and so no leftover of the run.
        self.decoys.stop()
        super().tearDown()

    def probe(self, options=(), env=None, **task):
        self.stage.put("task.json", json.dumps({"targets": [], "ping": [], "unix": []} | task), 0o644)
        outcome = self.assert_ok(self.run_inside(["/usr/bin/python3", "probe.py"], options, timeout=600,
                                                 **({"env": self.stage.environment(**env)} if env else {})))
        report = json.loads(outcome.stdout)
        for name, result in report["results"].items():
            self.assertNotIn("reached", result, name)
        self.assertEqual(self.decoys.hits, [])
        return report, outcome

    def test_the_decoys_themselves_can_be_reached_from_outside(self):
        for address in self.decoys.addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            try:
                with socket.socket(family) as client:
                    client.connect((address, self.decoys.port))
                    self.assertEqual(client.recv(10), BANNER)
            except OSError:
                self.assertIn(":", address)  # only IPv6 may be missing
        self.assertTrue(self.decoys.hits)

    def test_no_packet_reaches_any_address(self):
        port = self.decoys.port
        targets = [(a, port) for a in self.decoys.addresses] + [(a, p) for a in STRANGERS for p in (22, 80, 443)]
        targets += [(a, 53) for a in ("8.8.8.8", "2001:4860:4860::8888")]
        before = self.stage.traffic()
        _, outcome = self.probe(targets=targets, ping=[*self.decoys.addresses, *STRANGERS])
        self.assertEqual(self.stage.traffic(), before)
        refused = outcome.events("refused")
        # Datagrams past the first fifty are counted.
        self.assertLessEqual({line["kind"] for line in outcome.audit},
                             {"session_start", "refused", "coalesced", "session_end"}, str(outcome))
        entries = {line["entry"] for line in refused}
        self.assertLessEqual({"tcp", "udp"}, entries | ({"tcp"} if "tls" in entries else set()), str(outcome))
        self.assertLessEqual({line["reason"] for line in refused}, WAYS_OUT, str(outcome))
        self.account_for(refused)  # how many depends on how often the kernel tries

    def test_the_forges_own_address_is_no_way_around(self):
        before = self.stage.traffic()
        _, outcome = self.probe(targets=[(a, self.forge.port) for a in self.decoys.addresses])
        self.assertEqual(self.stage.traffic(), before)
        self.assertLessEqual({line["reason"] for line in outcome.events("refused")}, WAYS_OUT, str(outcome))
        self.account_for(outcome.events("refused"))

    def test_no_socket_of_the_host_is_there(self):
        agent = self.decoys.add_unix(self.stage.home / "agent.sock")
        docker = self.decoys.add_unix(self.stage.runtime / "docker.sock")
        self.addCleanup(os.unlink, agent)
        try:
            env = {"SSH_AUTH_SOCK": agent, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={agent}",
                   "DOCKER_HOST": f"unix://{docker}", "SOME_SECRET": "x", "GITHUB_TOKEN": "x",
                   "LD_PRELOAD": "", "GIT_CONFIG_COUNT": "0"}
            report, _ = self.probe(env=env, unix=[agent, docker, self.decoys.abstract, "/var/run/docker.sock",
                                                  "/run/docker.sock", "/run/dbus/system_bus_socket",
                                                  "@/tmp/dbus-x", "/run/systemd/private"])
            self.assertEqual(report["sockets"], [])
            self.assertEqual({name for name in env if report["environment"].get(name) == env[name]
                              and name != "GIT_CONFIG_COUNT"}, set())
        finally:
            os.unlink(docker)

    def test_a_socket_in_the_workspace_is_masked_or_refused(self):
        path = self.decoys.add_unix(self.stage.work / "daemon.sock")
        nested = self.stage.work / "deep"
        nested.mkdir()
        inner = self.decoys.add_unix(nested / "inner.sock")
        self.stage.put("task.json", json.dumps({"targets": [], "ping": [], "unix": [path, inner]}), 0o644)
        outcome = self.run_inside(["/usr/bin/python3", "probe.py"])
        self.assertEqual(self.decoys.hits, [])
        if outcome.code != harness.EXIT_SALLYPORT_FAILED:
            self.assertEqual(json.loads(outcome.stdout)["sockets"], [], str(outcome))
        else:
            self.assertIn("sock", outcome.stderr)

    def test_the_process_inside_has_no_power(self):
        report, _ = self.probe()
        status = report["status"]
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(int(status[name], 16), 0, name)
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        self.assertEqual(report["uid"], harness.TEST_UID)
        inside, _, count = map(int, report["uid_map"])
        self.assertEqual((inside, count), (harness.TEST_UID, 1))
        self.assertLess(len(report["processes"]), 10)

    def test_the_kernel_never_sees_root_in_it(self):
        running = self.stage.start("sleep 1000 & checkpoint here; kill $!")
        running.wait_for_checkpoint("here")
        uids = {processes.uid_of(pid) for pid in running.tree()
                if processes.executable(pid) in ("sh", "dash", "bash", "sleep")}
        self.assertEqual(uids, {harness.TEST_UID})
        running.pass_checkpoint("here")
        self.assert_ok(running.finish())

    def test_only_loopback_is_there(self):
        report, _ = self.probe()
        inert = ("tunl", "sit", "ip6tnl", "gre", "gretap", "erspan", "ip_vti", "ip6_vti", "ip6gre", "teql", "ip6_tnl")
        self.assertIn("lo", report["interfaces"])
        self.assertEqual([n for n in report["interfaces"] if n != "lo" and not n.startswith(inert)], [])

    def test_the_callers_terminal_cannot_be_typed_into(self):
        script = ("import fcntl, os, termios\n"
                  "for fd in (0, 1, 2):\n"
                  "  for request in (termios.TIOCSTI, termios.TIOCSTI | 1 << 32, 0x541C):\n"
                  "    try:\n"
                  "      fcntl.ioctl(fd, request if request < 1 << 32 else request - (1 << 32), b'x')\n"
                  "      print('typed')\n"
                  "    except OSError as error: print('refused', error.errno)\n"
                  "print(os.ttyname(0))\n")
        self.stage.put("type.py", script)
        outcome = self.stage.run_in_terminal(["/usr/bin/python3", "type.py"], ("--quiet",))
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertNotIn("typed", outcome.stdout)
        self.assertEqual(outcome.stdout.count("refused"), 9, str(outcome))

    def test_servers_of_its_own_work_on_every_port(self):
        outcome = self.assert_ok(self.run_inside(
            "/usr/bin/python3 -c '\n"
            "import socket\n"
            "for address, port, use in ((\"0.0.0.0\", 80, \"127.0.0.1\"), (\"127.0.0.1\", 443, \"127.0.0.1\"),"
            " (\"::1\", 8080, \"::1\"), (\"127.0.0.1\", 53, \"127.0.0.1\")):\n"
            "  family = socket.AF_INET6 if \":\" in address else socket.AF_INET\n"
            "  with socket.create_server((address, port), family=family) as server:\n"
            "    with socket.create_connection((use, port), 10) as client:\n"
            "      peer, _ = server.accept()\n"
            "      peer.sendall(b\"own\"); assert client.recv(3) == b\"own\"\n"
            "print(\"served\")'"))
        self.assertIn("served", outcome.stdout)
        self.assertEqual(outcome.events("refused"), [])

    def test_a_granted_name_has_an_address_and_others_have_none(self):
        before = self.stage.traffic()
        outcome = self.assert_ok(self.run_inside(
            "/usr/bin/python3 -c '\n"
            "import socket\n"
            "for name in (\"forge.test\", \"FORGE.test.\", \"other.test\", \"localhost\"):\n"
            "  try:\n"
            "    found = socket.getaddrinfo(name, 443, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)\n"
            "    print(name, *sorted({f[4][0] for f in found}))\n"
            "  except socket.gaierror as error: print(name, error.errno == socket.EAI_NONAME)'"))
        lines = dict(line.split(" ", 1) for line in outcome.stdout.splitlines())
        self.assertRegex(lines["forge.test"], r"^198\.1[89]\.\d+\.\d+$")
        self.assertEqual(lines["FORGE.test."], lines["forge.test"])
        self.assertEqual(lines["other.test"], "True")
        self.assertIn("127.0.0.1", lines["localhost"])
        self.assertEqual({line["host"] for line in outcome.events("refused")}, {"other.test"})
        self.assert_all_refused(outcome, "host_not_allowed", None, before)

    def test_the_policy_is_read_only_inside(self):
        outcome = self.run_inside("echo >>sallyport.toml")
        self.assert_failed(outcome)
        outcome = self.run_inside("rm sallyport.toml || mv sallyport.toml x")
        self.assert_failed(outcome)
        self.assertEqual(self.stage.policy.read_text(), harness.WIDGET_PUSH)


if __name__ == "__main__":
    harness.main()
