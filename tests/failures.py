#!/usr/bin/python3
"""failures.py RESULTS.xml: the tests that failed in a run of ctest --output-junit, each with the end of what it printed.
At the end of a long log, where whoever reads it looks first."""

import sys
import xml.etree.ElementTree as xml

LAST_LINES = 60


def main():
    for case in xml.parse(sys.argv[1]).iter("testcase"):
        skipped = case.find("skipped")
        if case.get("status") == "run" or (skipped is not None and skipped.get("message", "").startswith("SKIP_")):
            continue
        printed = (case.findtext("system-out") or "").splitlines()
        print(f"--- {case.get('name')} failed after {float(case.get('time')):.0f} s; the end of its output:")
        print("\n".join(printed[-LAST_LINES:]))


main()
