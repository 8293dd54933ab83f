#!/usr/bin/python3
"""Each of our processes is killed, at every point of a start, a clone and a push.

Then: an end that names what died and what to do, nothing sent any more, nothing left behind, and the same command
succeeds. Normally each victim and each point has its turn; with SALLYPORT_TEST_CRASH=all, each victim at each point.
"""

import os
import shutil
import signal
import time
import typing

import harness
import processes
from harness import AUTHOR, E2E, git_rule, in_both_flavours, policy

EVERY_PAIR = os.environ.get("SALLYPORT_TEST_CRASH") == "all"
URL = "https://forge.test/acme/slow"
CLONE = f"checkpoint begun; git clone -q {URL} s; checkpoint done"
PUSH = "checkpoint begun; cd p; git push -q origin HEAD:agent; checkpoint done"


def bubblewrap(running):
    wardens = running.pids_of("sallyportd")
    return [pid for pid in running.pids_of("bwrap") if processes.parent(pid) in wardens]


def first_inside(running):
    """The first process of the sandbox: still bubblewrap, or sallyport-init already."""
    return [pid for outer in bubblewrap(running) for pid in processes.children(outer)]


def sallyport_init(running):
    return [pid for pid in first_inside(running) if processes.executable(pid) == "init"]


def program(name):
    return lambda running: running.pids_of(name)


class Victim(typing.NamedTuple):
    find: typing.Callable  # its processes in a run
    shows: tuple  # what is said of its end

    # What died is started again, and the session goes on.
    restarted: bool = False


TRY_AGAIN = "run the same command again"
VICTIMS = {
    "sallyport": Victim(lambda running: [running.pid], ()),
    "warden": Victim(program("sallyportd"), ("the warden (sallyportd) died", TRY_AGAIN)),
    "both": Victim(lambda running: [running.pid, *running.pids_of("sallyportd")], ()),
    "netns helper": Victim(program("sallyport-netns"), ("sallyport-netns", "died", TRY_AGAIN)),
    "gate": Victim(program("sallyport-gate"), ("sallyport-gate died (signal 9) and is started again",), True),
    "vault": Victim(program("sallyport-vault"), ("sallyport-vault died (signal 9) and is started again",), True),
    "bubblewrap": Victim(bubblewrap, ("the sandbox died (signal 9", TRY_AGAIN)),
    "init": Victim(first_inside, ("the sandbox died (exit code 137", TRY_AGAIN)),
}


class Point(typing.NamedTuple):
    """Somewhere in a run: a state of its processes, a checkpoint inside, or a request that the forge holds."""
    when: typing.Callable = None  # of a running
    checkpoint: str = None
    hold: tuple = None
    # Upstream may have done already what was asked, or does it.
    upstream_done: bool = False


START = {
    "the warden starts": Point(program("sallyportd")),
    "the helper starts": Point(program("sallyport-netns")),
    "the vault starts": Point(program("sallyport-vault")),
    "the gate starts": Point(program("sallyport-gate")),
    "bubblewrap starts": Point(bubblewrap),
    "the sandbox is built": Point(first_inside),
    "init starts": Point(sallyport_init),
    "the doors are open": Point(lambda running: sallyport_init(running) and not running.pids_of("sallyport-netns")),
    "the command starts": Point(checkpoint="begun"),
    "the client starts": Point(program("git-remote-http")),
}


def held(request, place, **more):
    return Point(hold=(request, place), **more)


# Git asks for the service, for the refs, and for the pack.
CLONE_REQUESTS = {
    "the service is asked for": held(1, "start"),
    "the service is answered": held(1, "answer"),
    "the service's answer ends": held(1, "end"),
    "the refs are asked for": held(2, "start"),
    "the refs are answered": held(2, "answer"),
    "the refs' answer ends": held(2, "end"),
    "the pack is asked for": held(3, "start"),
    "the pack begins": held(3, "answer"),
    "the pack is in the middle": held(3, "middle"),
    "the pack ends": held(3, "end"),
    "the command ends": Point(checkpoint="done"),
}
# Git asks for the service, and sends the pack; four bytes between, whether it may, are answered by the gate.
PUSH_REQUESTS = {
    "the service is asked for": held(1, "start"),
    "the service is answered": held(1, "answer"),
    "the service's answer ends": held(1, "end"),
    # What is held at the forge may have left for it whole.
    "the commands come": held(2, "start", upstream_done=True),
    "the pack is in the middle": held(2, "middle", upstream_done=True),
    "the pack came": held(2, "answer", upstream_done=True),
    "the report ends": held(2, "end", upstream_done=True),
    "the command ends": Point(checkpoint="done", upstream_done=True),
}


def turns(points, flavour):
    """(point, victim): all pairs, or each point in one of the flavours, and each victim in turn."""
    if EVERY_PAIR:
        return [(point, victim) for point in points for victim in VICTIMS]
    # What lives at every point but the first ones.
    names = ["gate", "vault", "warden", "init", "both", "bubblewrap", "sallyport"]
    early = {"the warden starts": "warden", "the helper starts": "netns helper", "the vault starts": "vault",
             "the gate starts": "gate", "bubblewrap starts": "warden"}
    chosen = [(point, early.get(point, names[i % len(names)])) for i, point in enumerate(points)]
    return chosen[list(harness.Flavour).index(flavour)::2]


@in_both_flavours
class Crash(E2E):
    def setUp(self):
        if os.getuid() != 0:
            self.skipTest("finding the confined processes by their program needs root")
        super().setUp()
        self.stage.write_policy(policy(git_rule("forge.test/acme/*", "push")))
        self.forge.add_widget("acme/slow", blob_bytes=2 << 20)
        self.fresh = self.stage.root / "fresh.git"
        shutil.copytree(self.forge.path("acme/slow"), self.fresh)
        self.forge.open_gate()
        self.assert_ok(self.run_inside(f"git clone -q {URL} p; cd p; head -c 3000000 /dev/urandom >x; git add x\n"
                                       "git commit -q -m x", AUTHOR))

    def renew(self):
        """Everything as before the run."""
        self.forge.open_gate()
        self.forge.wait_idle()
        self.forge.replace_repo("acme/slow", self.fresh)
        shutil.rmtree(self.stage.work / "s", ignore_errors=True)
        for mark in self.stage.work.glob(".[ag][to]*"):
            mark.unlink()

    def go_to(self, point, command):
        """A run that has come to `point`; it waits there when the point is one of ours."""
        self.renew()
        if point.hold:
            self.forge.hold(*point.hold)
        running = self.stage.start(command)
        for checkpoint in ("begun", "done"):
            if checkpoint != point.checkpoint:
                running.pass_checkpoint(checkpoint)
        if point.checkpoint:
            running.wait_for_checkpoint(point.checkpoint)
        elif point.hold:
            running.wait_for(self.forge.holds, f"held at {point.hold}")
        else:
            running.wait_for(lambda: point.when(running), "the point", pause=0.002)  # some are short
        return running

    def assert_end(self, running, point, victim, refs):
        before = self.forge.traffic()
        for checkpoint in ("begun", "done"):
            running.pass_checkpoint(checkpoint)
        if not point.hold:
            self.forge.open_gate()
        outcome = running.finish()
        # Git's library asks again by itself when nothing was answered yet: through a restarted gate or vault.
        if victim.shows:
            self.assert_shows(outcome, *victim.shows)
        if not victim.restarted:
            if point.hold or point.checkpoint:
                self.assertEqual(self.forge.traffic(), before, f"egress goes on\n{outcome}")
            self.assertEqual(outcome.code, harness.EXIT_SALLYPORT_FAILED if victim.shows else -signal.SIGKILL,
                             str(outcome))
        self.forge.open_gate()
        self.forge.wait_idle()
        if outcome.code != 0:
            found = self.forge.refs("acme/slow")
            if point.upstream_done:
                found.pop("refs/heads/agent", None)
            self.assertEqual(found, refs, str(outcome))
        alarms = [line for line in outcome.events("alarm") if line["reason"] == "process_died"]
        self.assertLessEqual(len(alarms), 1, str(outcome))

    def check(self, point, victim, command, refs):
        running = self.go_to(point, command)
        victims = victim.find(running)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        if not victims:
            running.kill()
            return False
        self.assert_end(running, point, victim, refs)
        left = self.stage.snapshot.left_over(self.forge.pids())
        self.assertEqual(left, [], "left behind by the killed run")
        self.renew()
        for checkpoint in ("begun", "done"):
            running.pass_checkpoint(checkpoint)
        self.assert_ok(self.run_inside(command))
        self.assert_log_is_whole()
        return True

    def assert_log_is_whole(self):
        """At the latest now, every request and session has an end, be it that it was interrupted."""
        lines = self.stage.audit()
        for begins, ends, key in (("begin", "end", "request"), ("session_start", "session_end", "session")):
            begun, ended = ([line[key] for line in lines if line["kind"] == kind] for kind in (begins, ends))
            self.assertEqual(sorted(begun), sorted(ended), begins)

    def check_all(self, points, command):
        refs = self.forge.refs("acme/slow")
        for name, victim in turns(points, self.flavour):
            with self.subTest(f"{victim} when {name}"):
                began = time.monotonic()
                lived = self.check(points[name], VICTIMS[victim], command, refs)
                self.assertTrue(lived or EVERY_PAIR)
                if EVERY_PAIR:
                    took = f"{time.monotonic() - began:.1f} s" if lived else "no such process"
                    print(f"{victim} when {name}: {took}", flush=True)

    def test_at_a_start(self):
        self.check_all(START, CLONE)

    def test_in_a_clone(self):
        self.check_all(CLONE_REQUESTS, CLONE)

    def test_in_a_push(self):
        self.check_all(PUSH_REQUESTS, PUSH)


if __name__ == "__main__":
    harness.main()
