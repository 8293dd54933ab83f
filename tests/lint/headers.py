#!/usr/bin/python3
"""Every header compiles alone: headers.py BUILD_DIR, with the flags of that build's compile_commands.json.

What the first line of its own source file includes has been compiled alone by that build already, which compiles the
files of the rooms one by one.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

SRC = pathlib.Path(__file__).resolve().parents[2] / "src"
COMPILER = "clang++-19"
# What belongs to the one file that the flags were written for.
WITH_ARGUMENT = {"-o", "-c", "-MF", "-MT", "-MQ"}
ALONE = {"-MD", "-MMD"}


def flags_of_rooms(build):
    """{room: flags}, from the first file of each room."""
    flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        if SRC not in file.parents or file.parent.name in flags:
            continue
        words = shlex.split(entry["command"])
        start = next(i for i, word in enumerate(words) if "clang++" in word) + 1
        kept, skip = [], False
        for word in words[start:]:
            if skip or word in ALONE:
                skip = False
            elif word in WITH_ARGUMENT:
                skip = True
            else:
                kept.append(word)
        flags[file.parent.name] = [*kept, '-DSALLYPORT_SOURCE_DIR=""', '-DSALLYPORT_VAULT=""']  # as tests have them
    return flags


def compiled_by_the_build(header):
    source = header.with_suffix(".cc")
    if not source.exists():
        return False
    first = re.search(r'^#include "(.*)"$|^#include', source.read_text(), re.MULTILINE)
    return first is not None and first[1] == str(header.relative_to(SRC))


def check(header, flags):
    name = header.relative_to(SRC)
    done = subprocess.run([COMPILER, *flags, "-fsyntax-only", "-x", "c++", "-"], text=True, capture_output=True,
                          input=f'#include "{name}"\n', check=False)
    return f"{name} does not compile alone:\n{done.stderr}" if done.returncode else ""


def main():
    flags = flags_of_rooms(pathlib.Path(sys.argv[1]))
    headers = [h for h in sorted(SRC.glob("*/*.h")) if h.parent.name in flags and not compiled_by_the_build(h)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [p for p in pool.map(lambda h: check(h, flags[h.parent.name]), headers) if p]
    print("\n".join(problems))
    print(f"{len(headers)} headers that no source file includes first, {len(problems)} problems")
    sys.exit(1 if problems or not headers else 0)


if __name__ == "__main__":
    main()
