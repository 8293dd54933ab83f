#!/usr/bin/python3
"""What a hostile image, a hostile process and a hostile neighbour try at a session in a container."""

import os
import pathlib
import signal
import socket
import subprocess
import threading

import containers
import harness
import images
import processes
from containers import Containers
from engine import BUSYBOX

PACKET_OUTGOING = 4
ETH_P_ALL = 3
IP_PROTOCOLS = (0x0800, 0x86dd)
INIT = "/run/sallyport/init"


def setUpModule():
    containers.share_an_engine(bridge=True)


class HostileImages(Containers):
    def image(self, *entries, changes=()):
        images.import_image(self.engine, "hostile:test", ("ENV PATH=/bin", *changes), images.with_busybox(*entries))
        return "hostile:test"

    def test_a_group_of_the_hosts(self):
        group = f"root:x:0:user\nshadow:x:42:agent\ndocker:x:999:{self.stage.sandbox_uid}\n"
        passwd = f"root:x:0:0:root:/root:/bin/sh\nagent:x:{self.stage.sandbox_uid}:{self.stage.sandbox_uid}:a:/:/bin/sh\n"
        image = self.image(images.regular("etc/group", group.encode()), images.regular("etc/passwd", passwd.encode()))
        outcome = self.sallyport("new", "agent", "--image", image)
        # With a number for the group an engine does not look into the image's file.
        if outcome.code == 0:
            self.assertEqual(self.exec("agent", "id -G").stdout.split(), [str(self.stage.sandbox_uid)])
        else:
            self.assert_shows(outcome, "/etc/group puts uid")

    def test_a_link_in_the_place_of_our_folder(self):
        for entries in ((images.folder("elsewhere"), images.link("run", "elsewhere")),
                        (images.folder("run"), images.folder("elsewhere"), images.link("run/sallyport", "../elsewhere")),
                        (images.link("run", "/proc/1/root/tmp"),),
                        (images.link("run", str(self.stage.work)),)):
            with self.subTest([entry.linkname for entry, _ in entries]):
                outcome = self.sallyport("new", "agent", "--image", self.image(*entries))
                # Below /run nothing of an image is seen: a link there harms nobody.
                if outcome.code == 0:
                    self.assert_ok(self.sallyport("destroy", "agent"))
                else:
                    self.assert_nothing_is_left()
                # The engine makes the places of mounts, also where a link leads to the workspace: empty.
                made = [path for path in self.stage.work.rglob("*") if path != self.stage.policy]
                self.assertEqual([path for path in made if path.is_file() and path.stat().st_size], [])
                self.assertLessEqual({path.name for path in made}, {"sallyport", "init", "control", "ssh", "git-proxy"})

    def test_its_own_program_in_the_place_of_our_first(self):
        """A link leads our mount into a folder that the image's volume then covers.

        The program speaks as ours does, so nothing but its place tells them apart."""
        program = (harness.BIN_DIR / "sallyport-init").read_bytes()
        folders = ["a", "a/b", "a/b/c", "a/b/c/d"]
        deep = [*map(images.folder, folders), images.regular("a/b/c/d/init", program)]
        for entries, volumes in (
                ([images.folder("run"), images.folder("run/sallyport"), images.link("run/sallyport/init", "/a/b/c/d/init")],
                 ("/run/sallyport", "/a/b/c/d")),
                ([images.folder("run"), images.folder("run/sallyport"), images.link("run/sallyport/init", "/a/b/c/d/init"),
                  images.link("x", "/run")], ("/x/sallyport", "/a/b/c/d"))):
            with self.subTest(volumes):
                image = self.image(*deep, *entries, changes=[f"VOLUME {path}" for path in volumes])
                self.refused_new(image, "keeps sallyport-init from being the first program")

    def test_volumes_over_what_is_ours(self):
        for changes in (("VOLUME /run",), ("VOLUME /run/sallyport",), ("VOLUME /run/sallyport/init",), ("VOLUME /etc/ssl/certs",),
                        ("VOLUME /tmp",)):
            with self.subTest(changes):
                image = self.image(images.folder("run"), images.folder("run/sallyport"),
                                   images.regular("run/sallyport/init", BUSYBOX.read_bytes()), changes=changes)
                outcome = self.sallyport("new", "agent", "--image", image)
                if outcome.code == 0:
                    self.assertIn("Sallyport", self.exec("agent", "cat /etc/gitconfig; echo Sallyport").stdout)
                    self.assertNotIn(b"busybox", pathlib.Path(f"/proc/{self.both()[0]['State']['Pid']}/cmdline").read_bytes())
                    self.assert_ok(self.sallyport("destroy", "agent"))
                else:
                    self.assert_nothing_is_left()

    def test_a_volume_in_the_workspace(self):
        place = self.stage.work / ".git/hooks"
        self.refused_new(self.image(changes=(f"VOLUME {place}",)), "wants a volume at", "mount that elsewhere")
        self.assertFalse(place.exists())
        self.assertFalse(place.parent.exists())

    def test_commands_of_its_own(self):
        tell = "cat /etc/hostname >/run/ran; touch /tmp/ran; echo ran"
        image = self.image(changes=(f'ENTRYPOINT ["/bin/sh", "-c", "{tell}; sleep 1000"]', 'CMD ["evil"]',
                                    f"HEALTHCHECK --interval=1s CMD {tell}", "WORKDIR /nowhere",
                                    f"ONBUILD RUN {tell}"))
        self.new("agent", image=image)
        workload, _ = self.both()
        self.assertEqual((workload["Config"]["Entrypoint"], workload["Config"]["Cmd"]),
                         ([INIT, "connect", "/run/sallyport/control"], None))
        self.assertNotIn("Health", workload["State"])
        self.assert_ok(self.exec("agent", f"test ! -e /tmp/ran; test ! -e /run/ran; test $(pwd) = {self.stage.work}"))

    def test_variables_that_would_bend_ours(self):
        image = self.image(changes=("ENV LD_PRELOAD=/evil.so", "ENV GLIBC_TUNABLES=glibc.malloc.check=3", "ENV SSL_CERT_FILE=/evil.pem",
                                    "ENV GIT_CONFIG_COUNT=1", "ENV GIT_CONFIG_KEY_0=core.fsmonitor", "ENV GIT_CONFIG_VALUE_0=/evil",
                                    "ENV GIT_SSH_COMMAND=/evil", "ENV HOME=/evil", "ENV https_proxy=http://evil.test",
                                    "ENV SSH_AUTH_SOCK=/evil"))
        self.new("agent", image=image)
        self.assertNotIn(b"evil", pathlib.Path(f"/proc/{self.both()[0]['State']['Pid']}/environ").read_bytes())
        seen = dict(line.split("=", 1) for line in self.exec("agent", ["env"]).stdout.splitlines())
        # What a program of the image's own loads is the image's affair.
        self.assertEqual({name for name, value in seen.items() if "evil" in value}, {"LD_PRELOAD"})
        self.assertEqual(seen["GIT_CONFIG_KEY_0"], "core.hooksPath")

    def test_other_things_where_our_files_belong(self):
        for entries in ((images.folder("etc/gitconfig"),), (images.folder("etc/ssl"), images.link("etc/ssl/certs", "/tmp")),
                        (images.folder("etc/ssl"), images.folder("etc/ssl/certs"),
                         images.link("etc/ssl/certs/ca-certificates.crt", "/etc/passwd")),
                        (images.link("etc/gitconfig", str(self.stage.work / "sallyport.toml")),)):
            with self.subTest([entry.name for entry, _ in entries]):
                before = self.stage.policy.read_bytes()
                outcome = self.sallyport("new", "agent", "--image", self.image(*entries))
                if outcome.code == 0:
                    self.assert_ok(self.exec("agent", "true"))
                    self.assert_ok(self.sallyport("destroy", "agent"))
                else:
                    self.assertNotIn("bug", outcome.text)
                    self.assert_nothing_is_left()
                self.assertEqual(self.stage.policy.read_bytes(), before)
                self.assertEqual([path.name for path in self.stage.work.iterdir()], ["sallyport.toml"])


class Packets:
    """Counts the IP packets that come in by a device, and whether anybody comes to a server there."""

    def __init__(self, device):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.socket.bind((device, ETH_P_ALL))
        self.socket.settimeout(0.1)
        self.seen = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self):
        while not self._stop.is_set():
            try:
                data, (_, protocol, kind, *_) = self.socket.recvfrom(2048)
            except TimeoutError:
                continue
            except OSError:
                return
            if kind != PACKET_OUTGOING and protocol in IP_PROTOCOLS:
                self.seen.append((hex(protocol), data[:40].hex()))

    def close(self):
        self._stop.set()
        self._thread.join()
        self.socket.close()


class Intruders(Containers):
    """A device that appears in the network of a live session."""

    def start_talking(self, address):
        """Tries all the time to get out by whatever device there is."""
        script = (": >ready; while :; do for device in eth0 inner; do\n"
                  f"curl -s -m 1 --interface if!$device http://{address}:8000/ && echo got out\n"
                  "done; done")
        running = self.stage.spawn(self.argv("exec", "agent", "--", "bash", "-c", script))
        running.wait_for((self.stage.work / "ready").exists, "the command")
        return running

    def assert_ended(self, device, packets, talker):
        """`device`: a pattern of its name."""
        told = f'holds the device "{device}"'
        self.assertRegex(self.wait_for_end(), told)
        outcome = talker.finish()
        self.assertNotIn("got out", outcome.text)
        packets.close()
        self.assertEqual(packets.seen, [])
        alarms = [line for line in self.stage.audit() if line["kind"] == "alarm"]
        self.assertEqual([line["session"] for line in alarms], [self.status("agent")["id"]])
        # With the device there, curl could speak to the proxy, and was heard if it came before the session's end.
        refused = [line for line in self.stage.audit() if line["kind"] == "refused"]
        self.assertLessEqual({line["reason"] for line in refused}, {"ip_literal"})
        self.account_for(refused)
        self.assertRegex(alarms[0]["detail"], told)
        self.wait_for_no_container()

    def test_a_bridge_of_the_engines(self):
        self.new("agent")
        pause = self.both()[1]["Id"]
        shown = subprocess.run(["ip", "-4", "-o", "addr", "show", "docker0"], capture_output=True, text=True, check=True).stdout
        address = shown.split()[3].split("/")[0]
        with socket.create_server((address, 8000)) as server:
            packets = Packets("docker0")
            talker = self.start_talking(address)
            self.engine.request("POST", "/networks/none/disconnect", {"Container": pause, "Force": True})
            try:
                self.engine.request("POST", "/networks/bridge/connect", {"Container": pause})
            except AssertionError:
                pass  # the session has ended in the middle of it
            self.assert_ended("(eth0|veth[0-9a-f]+)", packets, talker)  # the engine names it when it is there
            server.settimeout(0)
            self.assertRaises(BlockingIOError, server.accept)

    def test_one_that_is_pushed_in(self):
        self.push_in(lambda: None)

    def test_one_that_is_pushed_in_while_nobody_looks(self):
        """The rules alone keep everything in, for as long as the daemon does not run; then the device is lowered."""
        state = self.push_in(self.stop_daemon)
        self.assertNotIn(",UP", state)

    def push_in(self, before):
        self.new("agent")
        inside = os.open(f"/proc/{self.both()[1]['State']['Pid']}/ns/net", os.O_RDONLY)
        self.addCleanup(os.close, inside)

        def run(*argv, enter=False):
            return subprocess.run([*(["nsenter", f"--net=/proc/self/fd/{inside}"] if enter else []), *argv], check=True, pass_fds=[inside],
                                  capture_output=True, text=True).stdout
        run("ip", "link", "add", "outer", "type", "veth", "peer", "name", "inner")
        run("ip", "addr", "add", "10.99.0.1/24", "dev", "outer")
        run("ip", "link", "set", "outer", "up")
        with socket.create_server(("10.99.0.1", 8000)) as server:
            packets = Packets("outer")
            talker = self.start_talking("10.99.0.1")
            before()
            run("ip", "link", "set", "inner", "netns", f"/proc/self/fd/{inside}")
            run("ip", "addr", "add", "10.99.0.2/24", "dev", "inner", enter=True)
            run("ip", "link", "set", "inner", "up", enter=True)
            if self.daemon_is_stopped():
                # From inside by that device, and by name of the other side.
                for _ in range(3):
                    subprocess.run(["nsenter", f"--net=/proc/self/fd/{inside}", "setpriv", "--reuid", "1000", "curl", "-s", "-m", "1",
                                    "--interface", "inner", "http://10.99.0.1:8000/"], pass_fds=[inside], check=False)
                self.assertEqual(packets.seen, [])
                self.daemon.process.send_signal(signal.SIGCONT)
            self.assert_ended("inner", packets, talker)
            server.settimeout(0)
            self.assertRaises(BlockingIOError, server.accept)
        state = run("ip", "-o", "link", "show", "inner", enter=True)
        run("ip", "link", "del", "outer")
        return state

    def stop_daemon(self):
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.daemon.wait_for(self.daemon_is_stopped, "its stop")

    def daemon_is_stopped(self):
        return processes.is_stopped(self.daemon.pid)


if __name__ == "__main__":
    harness.main()
