#!/usr/bin/python3
"""Rounds of kill -9 at the daemon, its gate and vault, and the container engine, while git works in a session.

After each: no way out beyond the policy, no session that is stuck, nothing left, and the same git command works. The seed is
in each round's name; SALLYPORT_TEST_ROUNDS says how many there are.
"""

import os
import random

from containers import IMAGE, Containers
import images
import processes
from engine import Engine
from harness import AUTHOR, Flavour, main
from test_sessions import Daemon

ROUNDS = int(os.environ.get("SALLYPORT_TEST_ROUNDS", "20"))
CLONE = "cd /tmp && rm -rf widget && git clone -q https://forge.test/acme/widget"
WORKS = {
    "clone": f"while :; do {CLONE}; done",
    "push": f"{CLONE} && cd widget && while :; do git commit -q --allow-empty -m x && git push -q origin HEAD:refs/heads/busy; done",
    "fetch": f"{CLONE} && cd widget && while :; do git fetch -q --prune origin; done",
}


class Rounds:
    """What both kinds of session have in common."""

    def play(self, victims, pids_of):
        self.new("agent")
        for number in range(ROUNDS):
            chance = random.Random(number)
            victim, work = chance.choice(victims), chance.choice(sorted(WORKS))
            with self.subTest(round=number, victim=victim, work=work):
                self.round(victim, work, pids_of, chance.randrange(8))

    def round(self, victim, work, pids_of, lines):
        begun = self.begun()
        running = self.stage.spawn([*self.argv("exec", "agent", *AUTHOR), "--", "sh", "-c", WORKS[work]])
        # Somewhere in the middle: so many requests later.
        running.wait_for(lambda: self.begun() > begun + lines, "work under way")
        pids_of[victim]()
        # What runs in the session may go on. Git's handler of SIGTERM can block it for good, in malloc(): so it is
        # killed with its caller.
        running.process.kill()
        running.finish()
        self.recover(victim)
        self.daemon.wait_for(lambda: self.sallyport("gateway status").code == 0, "a gateway that is ready")
        self.assert_ok(self.exec("agent", CLONE))

    def begun(self):
        return sum(line["kind"] == "begin" for line in self.stage.audit())

    def recover(self, victim):
        if victim == "sallyportd":
            self.daemon.finish()
            self.daemon = self.start_daemon()
            self.new("agent")
        elif victim == "dockerd":
            self.engine.start()
            self.daemon.wait_for(lambda: self.status("agent")["state"] in ("running", "ended"), "no state in between")
            if self.status("agent")["state"] == "running":
                self.assert_ok(self.sallyport("stop", "agent"))
            self.assert_ok(self.sallyport("start", "agent", "--quiet"))

    def kill_service(self, name):
        # Its sockets are closed when its end is seen, so the daemon hears of it before it is asked anything.
        processes.kill(self.daemon.pids_of(name))

    def services(self):
        return {"sallyport-gate": lambda: self.kill_service("sallyport-gate"),
                "sallyport-vault": lambda: self.kill_service("sallyport-vault"),
                "sallyportd": lambda: self.daemon.process.kill()}


class InContainers(Rounds, Containers):
    def make_engine(self):
        engine = Engine()
        self.addCleanup(engine.close)
        images.import_image(engine, IMAGE)
        return engine

    def test_nothing_stays_and_git_works_again(self):
        victims = self.services() | {"dockerd": self.engine.kill}
        self.play(sorted(victims), victims)


class UnderBubblewrap(Rounds, Daemon):
    flavour = Flavour.AS_ROOT

    def test_nothing_stays_and_git_works_again(self):
        self.play(sorted(self.services()), self.services())


if __name__ == "__main__":
    main()
