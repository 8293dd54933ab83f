#!/usr/bin/python3
"""Every claim of the pages below names the tests that show it, and every test named there exists.

A test is written as ctest and unittest know it: `room.Suite.Name` for a unit test, `e2e.FILE.test_name` for an end-to-end
test, `lint.name` for a rule of the tree. Each row of a table whose last column is "shown by" needs at least one."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("SECURITY.md", "docs/attacks.md", "docs/clients.md")
TEST_NAME = re.compile(r"`((?:[a-z]+\.[A-Z]\w+\.[A-Z]\w+)|(?:e2e\.[a-z]\w*\.test_\w+)|(?:lint\.\w+))`")
UNIT_TEST = re.compile(r"^\s*TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)


def existing_tests():
    names = set()
    for file in ROOT.glob("src/*/*_test.cc"):
        for suite, name in UNIT_TEST.findall(file.read_text()):
            names.add(f"{file.parent.name}.{suite}.{name}")
    for file in ROOT.glob("tests/e2e/test_*.py"):
        for name in re.findall(r"def (test_\w+)", file.read_text()):
            names.add(f"e2e.{file.stem.removeprefix('test_')}.{name}")
    lints = (ROOT / "tests/CMakeLists.txt").read_text()
    return names | set(re.findall(r"sallyport_script_test\((lint\.\w+)", lints))


def problems(page, tests):
    in_shown = False
    for number, line in enumerate(page.splitlines(), 1):
        named = TEST_NAME.findall(line)
        for name in named:
            if name not in tests:
                yield number, f"no such test: {name}"
        if not line.startswith("|"):
            in_shown = False
        elif line.rstrip().endswith("| shown by |"):
            in_shown = True
        elif in_shown and not named and not re.fullmatch(r"[|\- ]+", line):
            yield number, "a claim that no test shows: " + line


def main():
    tests, failed = existing_tests(), False
    for page in PAGES:
        for number, text in problems((ROOT / page).read_text(), tests):
            print(f"{page}:{number}: {text}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
