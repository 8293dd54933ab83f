#!/usr/bin/python3
"""The stage itself: stock git against the forge without any gateway, the faulty upstream, the search for a secret,
the search for leftovers. A test that leans on these is only as good as they are.
"""

import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

import harness
import canary
import processes
from faulty import ClosedPort, FaultyUpstream, cut_body, status
from forge import HOST, Forge, clean_git_environment
from pki import PrivateCa

TOKEN = "a token/with+odd=characters"


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stage-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)


class ForgeTest(Folder):
    def setUp(self):
        super().setUp()
        self.forge = Forge(TOKEN, users=("git", "x-access-token"))
        self.addCleanup(self.forge.stop)
        self.forge.start()

    def git(self, *args, options=None, cwd=None, **env):
        options = self.forge.direct_options() if options is None else options
        return subprocess.run(["git", *options, *map(str, args)], cwd=cwd or self.folder, text=True,
                              capture_output=True, env=clean_git_environment(self.folder) | env, check=False)

    def ok(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_clones_with_the_token(self):
        self.ok(self.git("clone", self.forge.direct_url("acme/widget"), "w"))
        head = self.git("rev-parse", "HEAD", cwd=self.folder / "w").stdout.strip()
        self.assertEqual(head, self.forge.refs("acme/widget")["refs/heads/main"])
        log = self.forge.log()
        self.assertEqual([line.method for line in log], ["GET", "POST", "POST"])
        self.assertEqual({(line.authorized, line.git_protocol, line.status) for line in log},
                         {(True, "version=2", 200)})
        self.assertEqual(len({line.connection for line in log}), 1)

    def test_accepts_every_user_it_was_told(self):
        options = self.forge.direct_options(user="x-access-token")
        self.ok(self.git("ls-remote", self.forge.direct_url("acme/widget"), options=options))

    def test_answers_401_to_anything_else(self):
        for options in (self.forge.direct_options(token="wrong"), self.forge.direct_options(user="root"),
                        self.forge.direct_options()[:-2],
                        [*self.forge.direct_options(), "-c", "http.extraHeader=Authorization: Basic Zm9vOmJhcg=="]):
            done = self.git("ls-remote", self.forge.direct_url("acme/widget"), options=options)
            self.assertEqual(done.returncode, 128, done.stderr)
            # Two Authorization headers are nginx's own 400.
            self.assertIn(self.forge.log()[-1].status, (401, 400))

    def test_takes_a_chunked_push_and_a_gzipped_fetch(self):
        self.ok(self.git("clone", self.forge.direct_url("acme/widget"), "w"))
        work = self.folder / "w"
        (work / "big.bin").write_bytes(os.urandom(3 * 1024 * 1024))
        self.ok(self.git("add", "big.bin", cwd=work))
        self.ok(self.git("commit", "-m", "big", cwd=work))
        self.ok(self.git("push", "origin", "HEAD:refs/heads/agent", cwd=work))
        self.assertEqual(self.forge.log()[-1].transfer_encoding, "chunked")
        self.assertEqual(self.forge.log()[-2].content_length, "4")
        self.assertEqual(self.forge.refs("acme/widget")["refs/heads/agent"],
                         self.git("rev-parse", "HEAD", cwd=work).stdout.strip())
        self.forge.add_refs(700, "acme/tags")
        self.ok(self.git("clone", self.forge.direct_url("acme/tags"), "t"))
        self.assertEqual(self.forge.log()[-1].content_encoding, "gzip")

    def test_serves_thirty_thousand_refs(self):
        self.forge.add_refs()
        done = self.ok(self.git("ls-remote", self.forge.direct_url("acme/refs")))
        self.assertEqual(len(done.stdout.splitlines()), 30002)  # with HEAD and main

    def test_serves_an_empty_repository_and_takes_its_first_push(self):
        self.ok(self.git("clone", self.forge.direct_url("acme/empty"), "e"))
        self.ok(self.git("commit", "--allow-empty", "-m", "first", cwd=self.folder / "e"))
        self.ok(self.git("push", "origin", "HEAD:refs/heads/main", cwd=self.folder / "e"))
        self.assertIn("refs/heads/main", self.forge.refs("acme/empty"))

    def test_streams_without_files_of_its_own(self):
        self.forge.add_big(24)
        self.ok(self.git("clone", self.forge.direct_url("acme/big"), "b"))
        self.ok(self.git("push", self.forge.direct_url("acme/empty"), "HEAD:refs/heads/main", cwd=self.folder / "b"))
        nginx = next(pid for pid in self.forge.pids() if processes.executable(pid) == "nginx")
        peak_kib = int(next(line for line in pathlib.Path(f"/proc/{nginx}/status").read_text().splitlines()
                            if line.startswith("VmHWM")).split()[1])
        self.assertLess(peak_kib, 20 * 1024)
        temporary = [path for path in (self.forge.root / "tmp").rglob("*") if path.is_file()]
        self.assertEqual(temporary, [])
        log = (self.forge.root / "nginx-error.log").read_text()
        self.assertNotIn("buffered to a temporary file", log)

    def test_holds_a_transfer_until_the_gate_opens(self):
        self.forge.add_widget("acme/slow", blob_bytes=1 << 20)
        clone = subprocess.Popen(["git", *self.forge.direct_options(), "clone", "-q",
                                  self.forge.direct_url("acme/slow"), "s"], cwd=self.folder,
                                 env=clean_git_environment(self.folder))
        with self.assertRaises(subprocess.TimeoutExpired):
            clone.wait(1)
        self.forge.open_gate()
        self.assertEqual(clone.wait(30), 0)

    def test_traffic_counts_a_connection_that_sends_nothing(self):
        before = self.forge.traffic()
        self.assertEqual(self.forge.traffic(), before)
        socket.create_connection(("127.0.0.1", self.forge.port)).close()
        self.assertEqual(self.forge.traffic().connections, before.connections + 1)
        self.assertEqual(self.forge.traffic().requests, before.requests)

    def test_leaves_nothing(self):
        processes.adopt_orphans()
        self.forge.stop()
        self.assertFalse(self.forge.root.exists())
        processes.reap_orphans(())
        self.assertEqual(processes.descendants(os.getpid()), [])

    def test_dies_with_the_process_that_started_it(self):
        script = ("import os, sys; sys.path.insert(0, sys.argv[1])\nfrom forge import Forge\n"
                  "forge = Forge('t', parent=sys.argv[2]).start()\nprint(*forge.pids(), flush=True)\n"
                  "os.kill(os.getpid(), 9)\n")
        self.folder.chmod(0o755)
        done = subprocess.run(["/usr/bin/python3", "-B", "-c", script, str(harness.HERE.parent / "forge"),
                               str(self.folder)], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, -9, done.stderr)
        pids = [int(pid) for pid in done.stdout.split()]
        self.assertGreater(len(pids), 1)
        deadline = time.monotonic() + processes.SETTLE_SECONDS
        while alive := [pid for pid in pids if processes.executable(pid) in ("nginx", "fcgiwrap")]:
            self.assertLess(time.monotonic(), deadline, alive)
            time.sleep(0.02)

    @unittest.skipIf(os.getuid() != 0, "needs root to become somebody else")
    def test_works_without_root(self):
        script = ("import sys; sys.path.insert(0, sys.argv[1])\nfrom forge import Forge\n"
                  "with Forge('t') as f: print(f.traffic(), f.uid)\n")
        done = subprocess.run(["/usr/bin/python3", "-B", "-c", script, str(harness.HERE.parent / "forge")],
                              user=harness.TEST_UID, group=harness.TEST_UID, extra_groups=[], text=True,
                              capture_output=True, cwd="/", env={"PATH": harness.PATH, "HOME": "/nonexistent"},
                              check=False)
        self.assertEqual((done.returncode, done.stdout.split()[-1]), (0, str(harness.TEST_UID)), done.stderr)


class FaultyUpstreamTest(Folder):
    def setUp(self):
        super().setUp()
        self.ca = PrivateCa(self.folder / "ca")

    def connect(self, address, name=HOST):
        host, port = address.split(":")
        context = ssl.create_default_context(cafile=str(self.ca.pem))
        return context.wrap_socket(socket.create_connection((host, int(port)), 10), server_hostname=name)

    def test_answers_in_the_order_of_its_script_and_records(self):
        with FaultyUpstream(self.ca.leaf(HOST), status(503), status(404)) as upstream:
            with self.connect(upstream.address) as stream:
                for code in (503, 404, 404):
                    stream.sendall(b"POST /x HTTP/1.1\r\nHost: a\r\nAuthorization: B\r\nContent-Length: 2\r\n\r\nhi")
                    answer = b""
                    while not answer.endswith(b"no\n"):
                        answer += stream.recv(4096)
                    self.assertIn(b" %d " % code, answer)
            self.assertEqual((upstream.connections, upstream.handshakes), (1, 1))
            self.assertEqual([r.authorization for r in upstream.requests], ["B"] * 3)

    def test_cuts_a_body(self):
        with FaultyUpstream(self.ca.leaf(HOST), cut_body()) as upstream, self.connect(upstream.address) as stream:
            stream.sendall(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
            received = b""
            while piece := stream.recv(4096):
                received += piece
            self.assertIn(b"Content-Length: 100000", received)
            self.assertLess(len(received), 1000)

    def test_bad_certificates_are_bad(self):
        other = PrivateCa(self.folder / "other")
        for leaf, word in ((self.ca.leaf("elsewhere.test"), "mismatch"), (self.ca.leaf(HOST, expired=True), "expired"),
                           (other.leaf(HOST), "unable to get local issuer")):
            with FaultyUpstream(leaf, status(200)) as upstream:
                with self.assertRaisesRegex(ssl.SSLCertVerificationError, word):
                    self.connect(upstream.address)
                self.assertEqual((upstream.connections, upstream.requests), (1, []))

    def test_a_closed_port_refuses(self):
        with ClosedPort() as port, self.assertRaises(ConnectionRefusedError):
            self.connect(port.address)


class CanaryTest(unittest.TestCase):
    """The search finds a token in each of the forms, and does not find one that is not there."""

    # The child builds the form from halves, so that its own program text does not hold it.
    HOLDER = ("import base64, sys\n"
              "secret = (sys.stdin.buffer.readline().strip() + sys.stdin.buffer.readline().strip())\n"
              "how = sys.argv[1]\n"
              "held = {'raw': lambda s: s, 'hex': lambda s: s.hex().encode(), 'HEX': lambda s: s.hex().upper().encode(),\n"
              "        'b0': lambda s: base64.b64encode(s + b'tail'), 'b1': lambda s: base64.b64encode(b'a' + s + b'tail'),\n"
              "        'b2': lambda s: base64.b64encode(b'ab' + s + b'tail'), 'none': lambda s: b'',\n"
              "        'percent': lambda s: b''.join(b'%%%02x' % c for c in s)}[how](secret)\n"
              "held = bytearray(held)\n"
              "size = len(secret)\n"
              "del secret\n"
              "print('ready', flush=True)\n"
              "sys.stdin.read()\n")

    def search(self, how, secret):
        child = subprocess.Popen([sys.executable, "-I", "-c", self.HOLDER, how], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        try:
            half = len(secret) // 2
            child.stdin.write(secret[:half].encode() + b"\n" + secret[half:].encode() + b"\n")
            child.stdin.flush()
            self.assertEqual(child.stdout.readline(), b"ready\n")
            return canary.search_process(child.pid, secret)
        finally:
            child.stdin.close()
            child.stdout.close()
            child.wait()

    def test_finds_every_form(self):
        for how, form in (("raw", "raw"), ("hex", "hex"), ("HEX", "HEX"), ("b0", "base64 at 0"),
                          ("b1", "base64 at 1"), ("b2", "base64 at 2"), ("percent", "percent")):
            with self.subTest(how):
                found = self.search(how, "canary-" + os.urandom(16).hex())
                self.assertTrue([place for place in found if place.endswith(": " + form)], found)

    def test_finds_nothing_in_a_process_that_never_had_it(self):
        secret = "canary-" + os.urandom(16).hex()
        child = subprocess.Popen(["sleep", "60"])
        try:
            self.assertEqual(canary.search_process(child.pid, secret), [])
        finally:
            child.kill()
            child.wait()

    def test_finds_it_in_environment_and_arguments(self):
        secret = "canary-" + os.urandom(16).hex()
        script = "echo ready; sleep 60; :"
        for argv, env, place in ((["sh", "-c", script], {"T": secret}, "environ: raw"),
                                 (["sh", "-c", script, secret], {}, "cmdline: raw")):
            child = subprocess.Popen(argv, env=env | {"PATH": harness.PATH}, start_new_session=True, stdout=subprocess.PIPE)
            try:
                self.assertEqual(child.stdout.readline(), b"ready\n")  # in the middle of exec(2) it has neither
                self.assertIn(place, canary.search_process(child.pid, secret))
            finally:
                os.killpg(child.pid, 9)
                child.stdout.close()
                child.wait()

    def test_finds_it_in_a_huge_sparse_mapping(self):
        secret = "canary-" + os.urandom(16).hex()
        program = ("import mmap, sys\nm = mmap.mmap(-1, 8 << 30)\nm.seek(5 << 30)\n"
                   "m.write(sys.stdin.buffer.readline().strip())\nprint('ready', flush=True)\nsys.stdin.read()\n")
        child = subprocess.Popen([sys.executable, "-I", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            child.stdin.write(secret.encode() + b"\n")
            child.stdin.flush()
            child.stdout.readline()
            found = canary.search_process(child.pid, secret)
            self.assertTrue([p for p in found if p.startswith("/dev/zero")], found)
        finally:
            child.stdin.close()
            child.stdout.close()
            child.wait()


class LeftoverTest(Folder):
    def setUp(self):
        super().setUp()
        processes.adopt_orphans()
        self.settle, processes.SETTLE_SECONDS = processes.SETTLE_SECONDS, 0.3
        self.addCleanup(setattr, processes, "SETTLE_SECONDS", self.settle)
        self.snapshot = processes.Snapshot(harness.TEST_UID, [self.folder], self.folder.name)

    def test_finds_nothing_when_there_is_nothing(self):
        subprocess.run(["true"], check=True)
        self.assertEqual(self.snapshot.left_over(()), [])

    def test_finds_an_orphan_in_a_session_of_its_own(self):
        subprocess.run(["setsid", "--fork", "sleep", "30"], check=True)
        left = self.snapshot.left_over(())
        orphans = processes.descendants(os.getpid())
        for pid in orphans:
            os.kill(pid, 9)
        self.assertEqual(len(left), len(orphans), left)
        self.assertIn("sleep 30", left[0])

    def test_finds_a_file_and_a_socket(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self.folder / "s"))
            self.assertEqual({item.split()[0] for item in self.snapshot.left_over(())}, {"file", "unix"})


if __name__ == "__main__":
    harness.main()
