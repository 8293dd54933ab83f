#!/usr/bin/python3
"""One sandbox floods, another works beside it: what the flood may cost is bounded, and its own alone."""

import collections
import os
import pathlib
import re
import subprocess
import time

import harness
import processes
from harness import E2E, in_both_flavours

# src/os/firewall.h: kMaxConnectionRecords.
MAX_RECORDS = 4000 + 250 * (10 + 65) + 4096
# src/audit/coalesce.h.
INTERVAL_SECONDS, BURST = 10, 50
# src/apps/sallyport_gate.cc.
MAX_GATE_DESCRIPTORS = 2048
# A gate at its 256 connections; sanitizers need more.
MAX_GATE_MIB, MAX_WARDEN_MIB = 64, 32

# (kind in flood_inside.py, how often at least)
FLOODS = {"half_open": 20000, "connect": 100, "clear_text": 50, "udp": 20000, "dns": 20000, "wildcard": 10000, "door": 10000,
          "idle": 10000, "slowloris": 10000, "loopback": 10000}


def resident_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def records(pid=None):
    """Connections that the kernel remembers in a process's network namespace, or on the host."""
    enter = ["nsenter", f"--net=/proc/{pid}/ns/net"] if pid else []
    done = subprocess.run([*enter, "cat", "/proc/sys/net/netfilter/nf_conntrack_count"], capture_output=True, check=False)
    return int(done.stdout or 0)


@in_both_flavours
class Floods(E2E):
    def setUp(self):
        if os.getuid() != 0:
            self.skipTest("looking into the confined processes needs root")
        super().setUp()
        self.stage.put("flood_inside.py", (harness.HERE / "flood_inside.py").read_bytes())
        self.stage.write_policy(harness.WIDGET_PUSH + '\n[[allow]]\nhost = "*.wild.test"\n')
        self.refs = self.forge.refs("acme/widget")

    def start_flood(self):
        """Returns once every kind of flood has done its rounds; all go on."""
        command = "".join(f"/usr/bin/python3 flood_inside.py {kind} {rounds} &\n" for kind, rounds in FLOODS.items())
        running = self.stage.start(command + "wait")
        running.wait_for_checkpoint("half_open")
        self.inside = next(pid for pid in running.tree() if processes.executable(pid) == "init")
        for kind in FLOODS:
            running.wait_for_checkpoint(kind)
        return running

    def assert_bounded(self, running):
        (gate,), (warden,) = running.pids_of("sallyport-gate"), running.pids_of("sallyportd")
        found = {"records": records(self.inside), "gate fds": descriptors(gate), "warden fds": descriptors(warden),
                 "gate MiB": resident_mib(gate), "warden MiB": resident_mib(warden)}
        self.assertGreater(found["records"], 100, "no flood at all")
        self.assertLessEqual(found["records"], MAX_RECORDS)
        self.assertLess(found["gate fds"], MAX_GATE_DESCRIPTORS)
        self.assertLess(found["warden fds"], 100)
        if not harness.SANITIZED:
            self.assertLess(found["gate MiB"], MAX_GATE_MIB)
            self.assertLess(found["warden MiB"], MAX_WARDEN_MIB)
        return found

    def assert_log_is_bounded(self, lines, seconds, summary):
        refused = [line for line in lines if line["kind"] == "refused"]
        sorts = collections.Counter((line["entry"], line["reason"]) for line in refused)
        # An interval in which nothing of a sort had to be counted gives it its burst again.
        self.assertLessEqual(max(sorts.values()), BURST * (seconds // INTERVAL_SECONDS + 2), sorts)
        counted = sum(line["count"] for line in lines if line["kind"] == "coalesced")
        self.assertGreater(counted, 1000)
        self.assertEqual(len(refused) + counted, int(re.search(r"(\d+) refused", summary)[1]), "each is told or counted")

    def test_another_sandbox_and_the_host_are_unharmed(self):
        host_before = records()
        began = time.monotonic()
        running = self.start_flood()
        self.assert_bounded(running)
        for folder in ("one", "two"):
            clone = self.assert_ok(self.run_inside(f"git clone -q https://forge.test/acme/widget {folder}"))
            head = (self.stage.work / folder / ".git/refs/heads/main").read_text().strip()
            self.assertEqual(head, self.refs["refs/heads/main"])
            self.assertRegex(clone.stderr, "requests allowed, 0 refused")
            self.assert_bounded(running)
        self.assertLess(records() - host_before, 1000)
        running.pass_checkpoint("stop")
        outcome = self.assert_ok(running.finish())
        session = collections.Counter(line["session"] for line in outcome.audit if line["kind"] == "refused").most_common(1)
        lines = [line for line in outcome.audit if line["session"] == session[0][0]]
        self.assert_log_is_bounded(lines, int(time.monotonic() - began), outcome.stderr)
        self.assertEqual([line for line in lines if line["kind"] in ("begin", "alarm")], [], "of the flood")
        self.account_for(line for line in lines if line["kind"] == "refused")

    def test_what_comes_too_fast_is_told_when_to_try_again(self):
        self.stage.write_policy(harness.WIDGET_PUSH + '\n[limits]\nrequests = "1/day burst 2"\n')
        url = "https://forge.test/acme/widget/info/refs?service=git-upload-pack"
        outcome = self.assert_ok(self.run_inside(f"for i in 1 2 3; do curl -s -i --noproxy '*' '{url}' | tr -d '\\r' | head -n 20; done"))
        self.assertEqual(re.findall(r"HTTP/1.1 (\d+)", outcome.stdout), ["200", "200", "429"], str(outcome))
        self.assertIn("\nRetry-After: 60\n", outcome.stdout)
        self.assertIn("Too many requests", outcome.stdout)
        self.assertEqual([line["reason"] for line in outcome.events("refused")], ["too_many"])
        self.assertEqual(len(outcome.events("begin")), 2)
        self.account_for(outcome.events("refused"))


if __name__ == "__main__":
    harness.main()
