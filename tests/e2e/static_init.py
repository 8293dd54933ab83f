"""For tests with containers, imported before the harness.

In an image of any kind only a static program runs, and a build with sanitizers has none: its sallyport-init is linked
dynamically. So these tests take that one program of the release, and all others of the build that is tested.
"""

import atexit
import os
import pathlib
import shutil
import tempfile

BUILDS = pathlib.Path(__file__).parents[2] / "build"


def use():
    programs = pathlib.Path(os.environ.get("SALLYPORT_BIN_DIR", BUILDS / "debug/bin"))
    if not os.environ.get("SALLYPORT_TEST_SANITIZED"):
        return
    mixed = pathlib.Path(tempfile.mkdtemp(prefix="mixed-", dir=programs.parent))
    atexit.register(shutil.rmtree, mixed)
    for program in programs.iterdir():
        if program.name != "sallyport-init":
            os.link(program, mixed / program.name)
    os.link(BUILDS / "release/bin/sallyport-init", mixed / "sallyport-init")
    mixed.chmod(0o755)
    os.environ["SALLYPORT_BIN_DIR"] = str(mixed)
