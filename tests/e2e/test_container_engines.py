#!/usr/bin/python3
"""Sessions in containers whose engine stops, is killed, hangs, or comes back."""

import os
import signal

import containers
import harness
import images
from engine import Engine


class Engines(containers.Containers):
    """Each with an engine of its own, to which something happens."""

    arguments = {}

    def make_engine(self):
        engine = Engine(**self.arguments)
        self.addCleanup(engine.close)
        images.import_image(engine, containers.IMAGE, tar=images.with_busybox())
        return engine

    def test_one_that_does_not_run(self):
        self.engine.stop()
        self.assert_shows(self.assert_failed(self.sallyport("new", "--image", containers.IMAGE)), "docker.sock")
        self.assertEqual(self.sessions(), [])
        self.engine.start()
        self.new("agent")

    def test_one_that_stops_ends_sessions_in_order(self):
        self.new("agent")
        self.engine.stop()
        self.wait_for_end()
        self.assertEqual(self.session_folders(), [])
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.engine.start()
        self.new("agent")
        self.assert_ok(self.exec("agent", "true"))
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.wait_for_no_container()

    def test_one_that_is_killed_and_comes_back(self):
        self.new("agent")
        self.engine.kill()
        self.assert_ok(self.exec("agent", "true"))  # its containers go on
        self.engine.start()  # which ends them
        self.wait_for_end()
        self.wait_for_no_container()
        self.assert_ok(self.sallyport("start", "agent", "--quiet"))
        self.assert_ok(self.exec("agent", "true"))

    def test_a_session_ends_without_one_and_is_tidied_up_later(self):
        self.new("agent")
        self.engine.kill()
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.assertEqual(self.sessions(), [])
        self.engine.start()
        self.wait_for_no_container()

    def test_one_that_hangs(self):
        self.new("first")
        os.kill(self.engine.process.pid, signal.SIGSTOP)
        running = self.stage.spawn(self.argv("new", "agent", "--image", containers.IMAGE))
        self.daemon.wait_for(lambda: len(self.sessions()) == 2, "the session")
        self.assert_ok(self.exec("first", "true"))
        running.process.send_signal(signal.SIGINT)
        self.assertNotEqual(running.finish().code, 0)
        os.kill(self.engine.process.pid, signal.SIGCONT)
        self.daemon.wait_for(lambda: len(self.sessions()) == 1, "the session's end")
        self.daemon.wait_for(lambda: len(self.engine.containers()) == 2, "its containers' end")


class LiveRestore(Engines):
    arguments = {"live_restore": True}

    test_one_that_does_not_run = test_one_that_hangs = None
    test_a_session_ends_without_one_and_is_tidied_up_later = None

    def test_one_that_stops_ends_sessions_in_order(self):
        self.new("agent")
        self.engine.stop()
        self.assert_ok(self.exec("agent", "true"))
        self.engine.start()
        self.assert_ok(self.exec("agent", "true"))
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.wait_for_no_container()

    def test_one_that_is_killed_and_comes_back(self):
        self.new("agent")
        self.engine.kill()
        self.engine.start()
        self.assert_ok(self.exec("agent", "true"))
        self.assert_ok(self.sallyport("destroy", "agent"))
        self.wait_for_no_container()


if __name__ == "__main__":
    harness.main()
