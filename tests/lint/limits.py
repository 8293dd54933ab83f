#!/usr/bin/python3
"""docs/limits.md names every limit of the code with its value, and nothing else: what bounds memory, time and numbers
shall be found in one place, and that place shall not lie. Without arguments it checks; --list prints what the code has.

A limit is a constexpr number or duration whose name says so (kMax..., kMin..., ...Limit, ...Timeout, ...Idle, NAME has all), or
any in a file limits.h.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAME = re.compile(r"k(Max|Min)\w+|k\w*(Limit|Timeout|Idle|Life|Grace|Refresh|BackOff|TtlSeconds|Burst\w*|Interval)")
DECLARATION = re.compile(r"constexpr\s+(?P<type>[\w:]+(?:\s+(?:int|long|char))?)\s+(?P<name>k[A-Z]\w*)\s*(?P<value>[={][^;]*);")
# Not of the programs, or of a format and no limit that anybody could set.
NOT_OURS = re.compile(r"_(test|fuzz|fixture)\.(h|cc)$|/(testing|test_client|fake_\w+|catalogue)\.h$|^src/bench/")
SECONDS = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1, "minutes": 60, "hours": 3600}
UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}


def value_of(text, kind, known):
    """The number, seconds for a duration; None when it is no arithmetic of numbers and known limits."""
    text = re.sub(r"\s+", " ", text.strip().lstrip("=").strip())
    unit = 1.0
    for name, seconds in SECONDS.items():
        if f"chrono::{name}" in kind + text:
            unit = seconds
    text = re.sub(r"std::chrono::\w+|std::u?int\d+_t|std::size_t|unsigned|sizeof\b", "", text)
    text = re.sub(r"(?<=\d)'(?=\d)", "", text).replace("{", "(").replace("}", ")")
    text = re.sub(r"(?<=\d)(?:UL{0,2}|L{1,2})\b", "", text)
    text = re.sub(r"\bk[A-Z]\w*", lambda m: repr(known.get(m.group(), m.group())), text)
    # A mode such as 0644 is no limit.
    if not re.fullmatch(r"[\d\s.()*+<x-]+", text) or re.match(r"0\d", text):
        return None
    value = eval(text, {"__builtins__": {}}) * unit  # digits and operators alone
    return int(value) if value == int(value) else value


def limits_of_code():
    """{(file, name): value}"""
    found = {}
    for path in sorted([*ROOT.glob("src/*/*.h"), *ROOT.glob("src/*/*.cc")]):
        file = str(path.relative_to(ROOT))
        if NOT_OURS.search(file):
            continue
        text = re.sub(r"//[^\n]*", "", path.read_text())
        here = {}
        for match in DECLARATION.finditer(text):
            name, kind = match["name"], match["type"]
            value = value_of(match["value"], kind, here)
            if value is None:
                continue
            here[name] = value
            if NAME.fullmatch(name) or path.name == "limits.h":
                found[file.removeprefix("src/"), name] = value
    return found


def limits_of_page():
    """{(file, name): value}, and the complaints about rows that cannot be read."""
    found, complaints = {}, []
    for number, line in enumerate((ROOT / "docs/limits.md").read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `k"):
            continue
        where = f"docs/limits.md:{number}"
        if len(cells) != 4 or not cells[3]:
            complaints.append(f"{where}: a row is: name, default, file, what happens past it")
            continue
        words = cells[1].replace(",", "").split(" ")
        try:
            value = float(words[0]) * UNITS[words[1] if len(words) > 1 else "B"]
        except (ValueError, KeyError):
            complaints.append(f"{where}: '{cells[1]}' is no number with one of the units {', '.join(UNITS)}")
            continue
        found[cells[2].strip("`"), cells[0].strip("`")] = value
    return found, complaints


def main():
    code = limits_of_code()
    if sys.argv[1:] == ["--list"]:
        for (file, name), value in code.items():
            print(f"{file} {name} {value}")
        return 0
    page, complaints = limits_of_page()
    for (file, name), value in code.items():
        if (file, name) not in page:
            complaints.append(f"src/{file}: {name} ({value}) has no row in docs/limits.md")
        elif abs(page[file, name] - value) > 1e-9:
            complaints.append(f"src/{file}: {name} is {value}, docs/limits.md says {page[file, name]}")
    complaints += [f"docs/limits.md: {name} is not in src/{file}" for file, name in page if (file, name) not in code]
    if not code:
        complaints.append("no limit found in src/: the lint is broken")
    print("\n".join(complaints), end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
