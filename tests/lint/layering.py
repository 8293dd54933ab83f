#!/usr/bin/python3
"""The plan of the house, checked: which room may link and include which, how long files may be, and that each
program's deps.txt tells what it links (so that review sees the vault grow).

    layering.py            check
    layering.py --write    write src/apps/*.deps.txt anew
"""

import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parents[2] / "src"

# ARCHITECTURE.md, "Rooms": what a room may link, lowest first. A row may name rooms of the rows above alone.
ALLOWED = {}


def room(name, *links, like=()):
    below = set(links).union(*(ALLOWED[r] | {r} for r in like)) if like else set(links)
    assert below <= set(ALLOWED), f"{name} names a room that does not stand below it"
    ALLOWED[name] = below


room("base")
room("policy", "base")
room("os", "base")
room("net", "base", "os", "policy")
room("audit", like=["net"])
room("wire", like=["audit"])
room("config", "base", "os", "policy")
room("http", like=["wire"])
room("upstream", like=["wire"])
room("vault", like=["upstream"])  # never http: the sandbox's bytes are not the vault's business
room("engine", "base", "os")
room("sandbox", like=["http", "engine"])
room("dns", like=["wire"])
room("forward", like=["http", "upstream"])
room("git", like=["forward", "vault"])
room("egress", like=["forward", "vault"])  # never git, nor git egress
room("gate", like=["git", "egress", "dns"])
room("container", like=["sandbox"])
room("session", like=["container", "config"])
room("control", like=["session"])
room("cli", like=["control"])

MAX_FILE_LINES = 500
MAX_APP_LINES = 200
# Files that may be longer, each with the reason. Empty is how it should stay.
LONG_FILES = {}

ROOM = re.compile(r"^sallyport_room\(\s*(\w+)([^)]*)\)", re.M)
APP = re.compile(r"^sallyport_app\(\s*([\w-]+)\s+([\w.]+)\s+LINKS([^)]*)\)", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
KEYWORDS = ("LINKS", "SYSTEM", "TEST_LINKS", "APART")


def read_rooms():
    """{room: {keyword: [word...]}} from every folder's CMakeLists.txt."""
    rooms = {}
    for file in sorted(SRC.glob("*/CMakeLists.txt")):
        for name, rest in ROOM.findall(file.read_text()):
            lists, current = {keyword: [] for keyword in KEYWORDS}, None
            for word in rest.split():
                if word in KEYWORDS:
                    current = word
                elif current:
                    lists[current].append(word)
            rooms[name] = lists
    return rooms


def reachable(rooms, links):
    seen, todo = set(), list(links)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += rooms.get(name, {"LINKS": []})["LINKS"]
    return seen


def check_links(rooms):
    for name, lists in rooms.items():
        folder = SRC / name
        if name not in ALLOWED:
            yield f"src/{name}: a room that the plan does not know"
            continue
        if not folder.is_dir():
            yield f"src/{name}: the room's folder has another name"
        for link in lists["LINKS"]:
            if link not in ALLOWED[name]:
                yield f"src/{name}/CMakeLists.txt: {name} may not link {link}"


def check_includes(rooms):
    for name, lists in rooms.items():
        linked = reachable(rooms, lists["LINKS"]) | {name}
        for file in sorted((SRC / name).glob("*.[ch]*")):
            test = file.stem.endswith(("_test", "_fuzz"))
            may = linked | (reachable(rooms, lists["TEST_LINKS"]) if test else set())
            yield from bad_includes(file, may, rooms)


def check_apps(rooms, write):
    file = SRC / "apps/CMakeLists.txt"
    if not file.exists():
        return
    for program, source, links in APP.findall(file.read_text()):
        path = SRC / "apps" / source
        if not path.exists():
            continue
        linked = reachable(rooms, links.split())
        yield from bad_includes(path, linked, rooms)
        if lines_of(path) > MAX_APP_LINES:
            yield f"src/apps/{source}: more than {MAX_APP_LINES} lines; programs only wire"
        deps = SRC / "apps" / f"{program}.deps.txt"
        expected = "".join(f"{name}\n" for name in sorted(linked))
        if write:
            deps.write_text(expected)
        elif not deps.exists() or deps.read_text() != expected:
            yield (f"src/apps/{deps.name}: is not what {program} links ({' '.join(sorted(linked))}); "
                   "if that is meant: tests/lint/layering.py --write")


def bad_includes(file, may, rooms):
    for target in INCLUDE.findall(file.read_text()):
        folder = target.split("/")[0]
        where = f"{file.relative_to(SRC.parent)}: includes {target}"
        if "/" not in target or not (SRC / target).exists():
            yield f"{where}, which is not a \"room/unit.h\" of this tree"
        elif folder in rooms and folder not in may:
            yield f"{where}, but its room links no {folder}"


def check_lengths():
    for file in sorted(SRC.rglob("*.[ch]*")):
        name = str(file.relative_to(SRC.parent))
        if lines_of(file) > MAX_FILE_LINES and name not in LONG_FILES:
            yield f"{name}: {lines_of(file)} lines; more than {MAX_FILE_LINES} want a second name"


def lines_of(file):
    return file.read_text().count("\n")


def main():
    write = sys.argv[1:] == ["--write"]
    rooms = read_rooms()
    if not rooms:
        sys.exit("no room found: the lint looks in the wrong place")
    problems = [*check_links(rooms), *check_includes(rooms), *check_apps(rooms, write), *check_lengths()]
    for problem in problems:
        print(problem)
    print(f"{len(rooms)} rooms, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
