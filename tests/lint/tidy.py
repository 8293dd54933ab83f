#!/usr/bin/python3
"""clang-tidy over every source file: tidy.py BUILD_DIR. The better part of an hour on two cores, for a new build.

A file that was clean is not looked at again until it changes, or a header of ours that it includes, or its flags, or
.clang-tidy: BUILD_DIR/tidy remembers. After an update of system headers, remove that folder.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
TIDY = "clang-tidy-19"
# The analyzer takes three quarters of the time of a test, following Google Test's macros.
CHECKS_OF_TESTS = "--checks=-clang-analyzer-*"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def sources_below(file, seen):
    """The file and every file of ours that it includes, however deep, added to the set."""
    if file in seen or not file.is_file():
        return seen
    seen.add(file)
    for name in INCLUDE.findall(file.read_text()):
        sources_below(SRC / name, seen)
    return seen


def fingerprint(file, command, common):
    digest = hashlib.sha256(common + command.replace(str(ROOT), "").encode())
    for source in sorted(sources_below(file, set())):
        digest.update(str(source.relative_to(SRC)).encode() + source.read_bytes())
    return digest.hexdigest()


def check(file, build):
    extra = [CHECKS_OF_TESTS] if file.name.endswith("_test.cc") else []
    done = subprocess.run([TIDY, "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option", *extra, file],
                          text=True, capture_output=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    clean = build / "tidy"
    clean.mkdir(exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes() + pathlib.Path(__file__).read_bytes()
    commands = {pathlib.Path(entry["file"]): entry["command"]
                for entry in json.loads((build / "compile_commands.json").read_text())}
    files = [file for file in sorted(SRC.glob("*/*.cc")) if file in commands]

    def check_once(file):
        stamp = clean / fingerprint(file, commands[file], common)
        if stamp.exists():
            return True
        problems = check(file, build)
        if problems:
            print(problems, flush=True)
            return False
        stamp.touch()
        return True

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = list(pool.map(check_once, files)).count(False)
    print(f"{len(files)} files, {failed} with problems")
    sys.exit(1 if failed or not files else 0)


if __name__ == "__main__":
    main()
