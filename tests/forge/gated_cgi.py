#!/usr/bin/python3
"""git http-backend behind a gate: the first FREE bytes pass each way, the rest only once the file RELEASE exists.

So a test holds a clone or a push exactly in the middle for as long as it likes, without measuring time. With a
file `hold` beside RELEASE that says "N PLACE", only the N-th request is held, and at that place.
"""

import os
import pathlib
import subprocess
import sys
import threading
import time

FREE_BYTES = 256 * 1024
CHUNK_BYTES = 16 * 1024


class Gate:
    def __init__(self, release):
        self._release = release
        self._folder = pathlib.Path(release).parent
        self._wrapper = os.getppid()
        self._place = "middle"
        hold = self._folder / "hold"
        if hold.exists():
            request, place = hold.read_text().split()
            self._place = place if int(request) == self._number() else None

    def _number(self):
        """Which request this is, counted by files that each can be made once."""
        number = 1
        while True:
            try:
                os.close(os.open(self._folder / f"request-{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                return number
            except FileExistsError:
                number += 1

    def wait(self, place):
        if place != self._place:
            return
        while not os.path.exists(self._release):
            (self._folder / "held").touch()
            if os.getppid() != self._wrapper:  # the forge was killed
                os._exit(1)
            time.sleep(0.02)


def pump(source, sink, gate):
    passed = 0
    while chunk := os.read(source, CHUNK_BYTES):
        if passed >= FREE_BYTES:
            gate.wait("middle")
        passed += len(chunk)
        view = memoryview(chunk)
        while view:
            view = view[os.write(sink, view):]


def upload(sink, gate):
    pump(0, sink, gate)
    os.close(sink)


def main():
    gate = Gate(os.environ["FORGE_RELEASE"])
    gate.wait("start")
    backend = subprocess.Popen(["/usr/lib/git-core/git-http-backend"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, bufsize=0)
    threading.Thread(target=upload, args=(os.dup(backend.stdin.fileno()), gate), daemon=True).start()
    backend.stdin.close()
    try:
        gate.wait("answer")
        pump(backend.stdout.fileno(), 1, gate)
        gate.wait("end")
        os.close(1)
    except BrokenPipeError:
        backend.kill()
    sys.exit(backend.wait())


main()
