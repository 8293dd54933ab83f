#!/usr/bin/python3
"""Sessions in containers of a real engine: `sallyport new --image`."""

import io
import json
import os
import pathlib
import re
import signal
import tarfile

import containers
import canary
import harness
import images
import processes
from containers import IMAGE, LABEL, Containers, cgroup_value, proc_status, wait_for_process
from harness import git_rule, policy


def setUpModule():
    containers.share_an_engine()


class Life(Containers):
    def test_a_container_is_a_sandbox(self):
        self.assertEqual(self.new("agent"), "agent")
        self.assert_ok(self.exec("agent", "git clone -q https://forge.test/acme/widget\ncd widget\n"
                                          "git commit -q --allow-empty -m from-inside\ngit push -q origin HEAD:new",
                                 *harness.AUTHOR))
        self.assertIn("from-inside", self.forge.repo_git("acme/widget", "log", "-1", "--format=%s", "new"))

    def test_both_containers_are_hardened(self):
        self.new("agent")
        workload, pause = self.both()
        uid = self.stage.sandbox_uid
        for state in (workload, pause):
            host, config = state["HostConfig"], state["Config"]
            self.assertEqual(host["CapDrop"], ["ALL"])
            self.assertFalse(host["CapAdd"] or host["Privileged"] or host["Devices"] or host["Binds"])
            self.assertTrue(host["ReadonlyRootfs"])
            self.assertEqual((host["IpcMode"], host["PidMode"], host["UTSMode"]), ("private", "", ""))
            self.assertIn("no-new-privileges", host["SecurityOpt"])
            profile = next(each for each in host["SecurityOpt"] if each.startswith("seccomp="))
            self.assertIn("io_uring_setup", profile)
            self.assertEqual(host["RestartPolicy"]["Name"], "no")
            self.assertEqual(config["User"], f"{uid}:{uid}")
            self.assertEqual(config["Healthcheck"], {"Test": ["NONE"]})
            self.assertEqual(config["StopSignal"], "SIGTERM")
            self.assertEqual(config["Labels"][LABEL], self.status("agent")["id"])
            self.assertEqual({mount["Propagation"] for mount in state["Mounts"]}, {"private"})
            seen = proc_status(state["State"]["Pid"])
            self.assertEqual({seen[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}, {"0" * 16})
            self.assertEqual((seen["NoNewPrivs"], seen["Seccomp"]), ("1", "2"))
            self.assertEqual(seen["Uid"].split(), [str(uid)] * 4)
            self.assertEqual((seen["Gid"].split(), set(seen["Groups"].split()) - {str(uid)}), ([str(uid)] * 4, set()))
            self.assertIn("Max core file size        1                    1", pathlib.Path(f"/proc/{state['State']['Pid']}/limits").read_text())
        self.assertEqual(pause["HostConfig"]["NetworkMode"], "none")
        self.assertEqual(workload["HostConfig"]["NetworkMode"], f"container:{pause['Id']}")
        self.assertEqual((pause["HostConfig"]["PidsLimit"], pause["HostConfig"]["Memory"]), (16, 32 << 20))
        writable = [mount["Destination"] for mount in workload["Mounts"] if mount["RW"]]
        self.assertEqual(writable, [str(self.stage.work)])
        self.assertEqual(set(workload["HostConfig"]["Tmpfs"]), {"/tmp", "/var/tmp", "/run", "/home/sandbox"})
        for folder, options in workload["HostConfig"]["Tmpfs"].items():
            self.assertIn("nosuid,nodev", options, folder)

    def test_limits_have_defaults_and_are_the_users(self):
        self.new("agent")
        workload, _ = self.both()
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.assertEqual(workload["HostConfig"]["PidsLimit"], 4096)
        self.assertEqual(workload["HostConfig"]["Memory"], memory // 2)
        self.assertEqual(workload["HostConfig"]["MemorySwap"], memory // 2)
        self.assertEqual(workload["HostConfig"]["NanoCpus"], 0)
        self.new("small", "--memory", "64MiB", "--cpus", "1.5", "--pids", "20")
        workload, _ = self.both("small")
        host, pid = workload["HostConfig"], workload["State"]["Pid"]
        self.assertEqual((host["Memory"], host["MemorySwap"], host["NanoCpus"], host["PidsLimit"]),
                         (64 << 20, 64 << 20, 1_500_000_000, 20))
        for controller, name, value in (("pids", "pids.max", "20"), ("memory", "memory.limit_in_bytes", str(64 << 20))):
            if (seen := cgroup_value(pid, controller, name)) is not None:
                self.assertEqual(seen, value)
        outcome = self.exec("small", "head -c 200000000 /dev/zero | tail -c 200000000 >/dev/null")
        self.assertNotEqual(outcome.code, 0, "200 MB in a container of 64")
        self.assert_ok(self.exec("small", "true"))

    def test_one_that_fills_its_processes_harms_nobody(self):
        self.new("agent", "--pids", "20")
        self.new("other")
        others = 18  # beside sallyport-init and the shell
        full = self.stage.spawn(self.argv("exec", "agent", "--", "sh", "-c", f"i=0; while [ $i -lt {others} ]; do sleep 1000 & "
                                                                             "i=$((i+1)); done; : >full; wait"))
        full.wait_for((self.stage.work / "full").exists, "the limit")
        self.assert_shows(self.assert_failed(self.exec("agent", "true")), "Resource temporarily unavailable")
        self.assert_ok(self.exec("other", "true"))
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.assertNotEqual(full.finish().code, 0)

    def test_the_images_variables_are_there_and_its_user_is_not(self):
        self.new("agent", "--env", "MINE=here")
        outcome = self.assert_ok(self.exec("agent", "env; id -u; id -g"))
        lines = outcome.stdout.splitlines()
        self.assertEqual(lines[-2:], [str(self.stage.sandbox_uid)] * 2)
        for line in ("PATH=/usr/bin:/bin", "FROM_IMAGE=yes", "MINE=here", "HOME=/home/sandbox", f"PWD={self.stage.work}",
                     "GIT_SSH_COMMAND=/run/sallyport/ssh"):
            self.assertIn(line, lines)
        # What is for the workload is not for what is there before it.
        pid = self.both()[0]["State"]["Pid"]
        self.assertIn(b"FROM_IMAGE=\0", pathlib.Path(f"/proc/{pid}/environ").read_bytes())

    def test_what_is_writable_goes_with_it_and_the_rest_is_not(self):
        self.new("agent")
        self.assert_ok(self.exec("agent", 'for folder in "$HOME" /tmp /var/tmp /run .; do echo x >"$folder/new"; done\n'
                                          'for folder in / /etc /usr /bin /run/sallyport/init /etc/gitconfig /proc/sys/kernel; do\n'
                                          '  ! (echo x >"$folder/new") 2>/dev/null || exit 3\ndone\n'
                                          '! (echo x >/etc/gitconfig) 2>/dev/null\n'
                                          'cp /bin/busybox /tmp/; /tmp/busybox true\ntest "$(hostname)" = sandbox'))
        self.assertEqual((self.stage.work / "new").stat().st_uid, self.stage.sandbox_uid)
        self.assert_ok(self.sallyport("stop", "agent"))
        self.assert_ok(self.sallyport("start", "agent", "--quiet"))
        self.assert_ok(self.exec("agent", 'test ! -e /tmp/new; test ! -e "$HOME/new"; test -e new'))

    def test_mounts_are_as_in_any_session(self):
        more = self.stage.folder("more", self.stage.sandbox_uid, 0o755)
        (self.stage.root / "alias").symlink_to(more)
        self.new("agent", "--mount", f"{self.stage.root / 'alias'}:ro")
        self.assert_failed(self.exec("agent", f"echo x >{more}/x"))
        self.assert_ok(self.exec("agent", f"test -d {more}; test -d {self.stage.root}/alias"))
        self.assert_failed(self.sallyport("new", "--image", IMAGE, "--mount", "/etc"))
        self.assert_failed(self.sallyport("new", "--image", IMAGE, "--mount", self.engine.socket))
        self.assert_failed(self.sallyport("new", "--image", IMAGE, "--mount", self.state / "containers"))

    def test_exit_codes_outputs_and_signals_are_the_commands(self):
        self.new("agent")
        self.assert_codes_and_outputs_are_the_commands()
        running = self.stage.spawn(self.argv("exec", "agent", "--", "sh", "-c", "trap 'echo got; exit 7' TERM; : >ready; "
                                                                                "while :; do sleep 0.05; done"))
        running.wait_for((self.stage.work / "ready").exists, "the trap")
        running.process.send_signal(signal.SIGTERM)
        outcome = running.finish()
        self.assertEqual((outcome.code, outcome.stdout), (7, "got\n"))

    def test_a_terminal_is_a_terminal_inside(self):
        self.new("agent")
        outcome = self.stage.run_in_terminal("test -t 0 && test -t 1 && test -t 2 && stty size && echo yes >/dev/tty",
                                             program=(*self.argv("exec", "agent"), "--env", "X=y"))
        self.assertEqual(outcome.code, 0, str(outcome))
        self.assertIn("yes", outcome.stdout)

    def test_each_start_is_another_pause_and_another_container(self):
        self.new("agent")
        first, before = self.both(), self.status("agent")["id"]
        self.assert_ok(self.sallyport("stop", "agent"))
        self.assertEqual(self.engine.containers(), set())
        self.assertEqual(self.session_folders(), [])
        self.assert_ok(self.sallyport("start", "agent", "--quiet"))
        second = self.both()
        self.assertNotEqual(self.status("agent")["id"], before)
        self.assertEqual(len({state["Id"] for state in (*first, *second)}), 4)
        self.assert_ok(self.exec("agent", "git clone -q https://forge.test/acme/widget"))
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.assert_nothing_is_left()

    def test_the_start_line_tells_who_it_is(self):
        self.new("agent")
        workload, pause = self.both()
        (line,) = [line for line in self.stage.audit() if line["kind"] == "session_start"]
        self.assertEqual(line["session"], self.status("agent")["id"])
        pid = workload["State"]["Pid"]
        inode = os.stat(f"/proc/{pid}/ns/net").st_ino
        self.assertEqual(inode, os.stat(f"/proc/{pause['State']['Pid']}/ns/net").st_ino)
        self.assertNotEqual(inode, os.stat("/proc/self/ns/net").st_ino)
        self.assertIn(f"container {workload['Id']}, pause {pause['Id']}, image {IMAGE} ({workload['Image']}), pid {pid} "
                      f"since {workload['State']['StartedAt']}, network namespace {inode}", line["container"])
        self.assertEqual(workload["Image"], self.engine.request("GET", f"/images/{IMAGE}/json")["Id"])

    def test_what_the_policy_refuses_is_refused(self):
        self.new("agent")
        self.assert_refused("repo_not_granted", "git clone -q https://forge.test/acme/other",
                            shows=("The policy does not grant this repository.",))
        self.assert_refused("host_not_allowed", "curl -sS https://elsewhere.test/", options=self.without_proxy(), lines=None)
        self.assert_refused("ip_literal", "curl -fsS --noproxy '*' -m 20 http://10.1.2.3/")
        self.assertEqual({line["session"] for line in self.stage.audit()}, {self.status("agent")["id"]})

    def without_proxy(self):
        return [word for name in ("http_proxy", "https_proxy", "all_proxy") for word in ("--env", f"{name}=", "--env",
                                                                                         f"{name.upper()}=")]

    def test_an_image_that_is_not_there(self):
        self.refused_new("nobody/has:it", "has no image nobody/has:it", "docker pull nobody/has:it")
        self.refused_new("../../version")
        self.new("agent")

    def test_the_pauses_image_comes_back_when_it_is_removed(self):
        self.new("agent")
        image = self.both()[1]["Config"]["Image"]
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.engine.request("DELETE", f"/images/{image}")
        self.new("agent")

    def test_an_image_with_a_volume(self):
        images.import_image(self.engine, "volume:test", ("VOLUME /data", "ENV PATH=/bin"), images.with_busybox())
        self.new("agent", image="volume:test")
        self.assert_ok(self.exec("agent", "test -d /data"))
        self.assertEqual([mount["Type"] for mount in self.both()[0]["Mounts"] if mount["Destination"] == "/data"], ["volume"])
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.assertEqual(self.engine.request("GET", "/volumes")["Volumes"] or [], [])


class Secrets(Containers):
    def test_no_credential_is_anywhere_in_it(self):
        self.new("agent")
        self.assert_ok(self.exec("agent", "git clone -q https://forge.test/acme/widget; cd widget\n"
                                          "git commit -q --allow-empty -m x; git push -q origin HEAD:new", *harness.AUTHOR))
        running = self.stage.spawn(self.argv("exec", "agent", "--", "sh", "-c", "env >/tmp/env; : >ready; exec sleep 1000"))
        running.wait_for((self.stage.work / "ready").exists, "the command")
        needles = canary.forms(self.stage.token)
        for state in self.both():
            self.assertEqual(canary.find_in(json.dumps(state).encode(), needles), [])
            exported = self.engine.request("GET", f"/containers/{state['Id']}/export")
            self.assertGreater(len(list(tarfile.open(fileobj=io.BytesIO(exported)))), 0)
            self.assertEqual(canary.find_in(exported, needles), [])
            pid = state["State"]["Pid"]
            self.assertEqual(canary.search_process(pid, self.stage.token), [])
            self.assertEqual(self.search_mounts(pid, needles), [])
        inside = [each for each in processes.all_pids() if processes.uid_of(each) is not None
                  and self.in_container(each, self.both()[0])]
        self.assertGreaterEqual(len(inside), 2)
        for pid in inside:
            self.assertEqual(canary.search_process(pid, self.stage.token), [], processes.describe(pid))
        for path in (self.state / "containers").rglob("*"):
            if path.is_file():
                self.assertEqual(canary.find_in(path.read_bytes(), needles), [], path)
        self.assertEqual(canary.find_in(self.engine.log.read_bytes(), needles), [])
        self.assert_ok(self.sallyport("destroy", "agent"))
        running.finish()

    @staticmethod
    def in_container(pid, state):
        try:
            return os.stat(f"/proc/{pid}/ns/pid").st_ino == os.stat(f"/proc/{state['State']['Pid']}/ns/pid").st_ino
        except OSError:
            return False

    @staticmethod
    def search_mounts(pid, needles):
        """In all that is written to inside: tmpfs is in no export."""
        found = []
        for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
            place = line.split()[4]
            if place == "/" or place.startswith(("/proc", "/sys", "/dev")):
                continue
            top = pathlib.Path(f"/proc/{pid}/root{place}")
            for path in [top, *top.rglob("*")] if top.is_dir() else [top]:
                if path.is_file() and not path.is_symlink():
                    found += [f"{path}: {form}" for form in canary.find_in(path.read_bytes(), needles)]
        return found


class Neighbours(Containers):
    def test_none_reaches_another(self):
        self.forge.add_widget("acme/mine", blob_bytes=10)
        work = self.stage.folder("other", self.stage.sandbox_uid, 0o755)
        self.stage.write(work / "sallyport.toml", policy(git_rule("forge.test/acme/mine")), self.stage.sandbox_uid)
        self.new("other", "--workspace", work)
        self.new("agent")
        server = self.stage.spawn(self.argv("exec", "other", "--", "sh", "-c", "nc -l -p 8080"))
        sockets = pathlib.Path(f"/proc/{self.both('other')[0]['State']['Pid']}/net")
        server.wait_for(lambda: any(re.search(":1F90 0+:0000 0A", (sockets / name).read_text()) for name in ("tcp", "tcp6")),
                        "the server")
        self.assert_failed(self.exec("agent", "nc -w 3 127.0.0.1 8080 </dev/null"))
        self.assert_ok(self.exec("other", "nc -w 60 127.0.0.1 8080 </dev/null"))
        server.finish()
        inodes = {os.stat(f"/proc/{self.both(name)[0]['State']['Pid']}/ns/net").st_ino for name in ("agent", "other")}
        self.assertEqual(len(inodes), 2)
        self.assert_refused("repo_not_granted", "git clone -q https://forge.test/acme/mine")
        self.assert_ok(self.exec("other", "git clone -q https://forge.test/acme/mine"))
        self.assert_ok(self.exec("agent", "git clone -q https://forge.test/acme/widget"))
        self.assert_failed(self.exec("agent", f"ls {work}"))
        self.assert_ok(self.exec("agent", "grep -q sandbox /etc/hosts"))

    def test_an_authority_of_another_is_worth_nothing(self):
        work = self.stage.folder("other", self.stage.sandbox_uid, 0o755)
        self.stage.write(work / "sallyport.toml", harness.WIDGET_PUSH, self.stage.sandbox_uid)
        self.new("agent")
        self.new("other", "--workspace", work)
        self.assert_ok(self.exec("other", "cp /etc/ssl/certs/sallyport-session.pem ."))
        self.stage.put("theirs.pem", (work / "sallyport-session.pem").read_text())
        before = self.stage.traffic()
        outcome = self.assert_failed(self.exec("agent", "curl -sS --cacert theirs.pem https://forge.test/acme/widget"))
        self.assert_shows(outcome, "certificate")
        # The gate tells when it has heard the alert.
        self.daemon.wait_for(lambda: [line for line in self.stage.audit() if line["kind"] == "refused"], "its line")
        outcome.audit = [line for line in self.stage.audit() if line["session"] == self.status("agent")["id"]]
        self.assert_all_refused(outcome, "tls_pinned", 1, before)
        self.assertNotEqual((work / "sallyport-session.pem").read_text(),
                            self.exec("agent", "cat /etc/ssl/certs/sallyport-session.pem").stdout)


class Ends(Containers):
    def test_whatever_of_it_is_killed_ends_all_of_it(self):
        for which, words in ((0, "its container, sallyport-"), (1, "its pause, sallyport-")):
            self.new("agent")
            states = self.both()
            os.kill(states[which]["State"]["Pid"], signal.SIGKILL)
            summary = self.wait_for_end()
            self.assertIn("the sandbox died (", summary)
            self.assertIn(words, summary)
            self.wait_for_no_container()
            self.assert_shows(self.assert_failed(self.exec("agent", "true")), "does not run")
            self.assert_ok(self.sallyport("start", "agent", "--quiet"))
            self.assert_ok(self.exec("agent", "true"))
            self.assert_ok(self.sallyport("destroy", "agent"))
        self.assertEqual([line["reason"] for line in self.stage.audit() if line["kind"] == "alarm"], ["process_died"] * 2)

    def test_the_engines_own_ways_to_end_it(self):
        for method, target in (("POST", "/containers/{}/kill"), ("POST", "/containers/{}/stop"), ("DELETE", "/containers/{}?force=1"),
                               ("POST", "/containers/{}/restart")):
            for which in (0, 1):
                with self.subTest(target, which=which):
                    self.new("agent")
                    try:
                        self.engine.request(method, target.format(self.both()[which]["Id"]))
                    except AssertionError:
                        pass  # removed meanwhile, by us
                    self.wait_for_end()
                    self.wait_for_no_container()
                    self.assert_ok(self.sallyport("destroy", "agent"))

    def test_one_that_is_frozen_can_be_destroyed(self):
        self.new("agent")
        for state in self.both():
            self.engine.request("POST", f"/containers/{state['Id']}/pause")
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.assert_nothing_is_left()

    def test_nothing_inside_can_end_or_bend_its_first_process(self):
        self.new("agent")
        self.assert_ok(self.exec("agent", "kill -KILL 1 || true; kill -TERM 1 || true; kill -STOP 1 || true\n"
                                          "! cat /proc/1/environ 2>/dev/null; ! cat /proc/1/mem 2>/dev/null; ! ls /proc/1/fd 2>/dev/null"))
        self.assert_failed(self.exec("agent", ["nc", "local:/run/sallyport/control"]))
        self.assertEqual(self.exec("agent", ["/run/sallyport/init", "connect", "/run/sallyport/control"]).code, 1)
        self.assert_ok(self.exec("agent", "true"))

    def test_interrupted_half_way_it_leaves_nothing(self):
        self.new("first")
        self.assert_ok(self.sallyport("destroy", "first"))
        vault = self.daemon.pids_of("sallyport-vault")[0]
        for number in (signal.SIGINT, signal.SIGKILL):
            os.kill(vault, signal.SIGSTOP)  # so that no session gets ready
            running = self.stage.spawn(self.argv("new", "agent", "--image", IMAGE))
            self.daemon.wait_for(lambda: len(self.engine.containers()) == 2, "both containers")
            running.process.send_signal(number)
            self.assertNotEqual(running.finish().code, 0)
            self.daemon.wait_for(lambda: self.sessions() == [], "the session's end")
            self.wait_for_no_container()
            os.kill(vault, signal.SIGCONT)
        self.assert_nothing_is_left()
        self.new("agent")

    def test_the_daemons_end_is_theirs(self):
        self.new("agent")
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.finish().code, 0)
        self.assertEqual(self.engine.containers(), set())
        self.assertEqual(self.session_folders(), [])

    def test_a_daemon_that_is_killed_takes_them_along(self):
        self.new("agent")
        pids = [state["State"]["Pid"] for state in self.both()]
        handles = [os.pidfd_open(pid) for pid in pids]
        self.daemon.process.kill()
        self.daemon.finish()
        for handle in handles:
            wait_for_process(handle)
        self.assertEqual(len(self.engine.containers()), 2)
        self.daemon = self.start_daemon()
        self.wait_for_no_container()
        self.assert_nothing_is_left()

    def test_containers_of_others_stay(self):
        made = self.engine.request("POST", "/containers/create?name=theirs", {"Image": IMAGE, "Cmd": ["true"],
                                                                              "Labels": {"org.sallyport.daemon": "/another"}})
        try:
            self.new("agent")
            self.daemon.process.kill()
            self.daemon.finish()
            self.daemon = self.start_daemon()
            self.daemon.wait_for(lambda: self.engine.containers() == {made["Id"]}, "the end of ours")
        finally:
            self.engine.request("DELETE", f"/containers/{made['Id']}?force=1")


if __name__ == "__main__":
    harness.main()
