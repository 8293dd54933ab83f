#!/usr/bin/python3
"""git http-backend behind a gate: the first FREE bytes pass each way, the rest only once the file RELEASE exists.

So a test holds a clone or a push exactly in the middle for as long as it likes, without measuring time.
"""

import os
import subprocess
import sys
import threading
import time

FREE_BYTES = 256 * 1024
CHUNK_BYTES = 16 * 1024


def pump(source, sink, release):
    passed = 0
    wrapper = os.getppid()
    while chunk := os.read(source, CHUNK_BYTES):
        while passed >= FREE_BYTES and not os.path.exists(release):
            if os.getppid() != wrapper:  # the forge was killed
                os._exit(1)
            time.sleep(0.02)
        passed += len(chunk)
        view = memoryview(chunk)
        while view:
            view = view[os.write(sink, view):]
    os.close(sink)


def main():
    release = os.environ["FORGE_RELEASE"]
    backend = subprocess.Popen(["/usr/lib/git-core/git-http-backend"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, bufsize=0)
    upload = threading.Thread(target=pump, args=(0, os.dup(backend.stdin.fileno()), release), daemon=True)
    backend.stdin.close()
    upload.start()
    try:
        pump(backend.stdout.fileno(), 1, release)
    except BrokenPipeError:
        backend.kill()
    sys.exit(backend.wait())


main()
