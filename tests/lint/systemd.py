#!/usr/bin/python3
"""The unit of packaging/systemd is one that systemd understands: `systemd-analyze verify`, which needs no running systemd. And it
keeps what the daemon counts on."""

import configparser
import pathlib
import subprocess
import sys
import tempfile

UNIT = pathlib.Path(__file__).resolve().parents[2] / "packaging/systemd/sallyportd.service"
PROGRAM = "/usr/bin/sallyportd"
COUNTED_ON = {
    "Type": "notify",
    "RuntimeDirectory": "sallyport",
    "RuntimeDirectoryMode": "0700",
    "KillMode": "mixed",
    "LimitNOFILE": "1048576",
    "LimitCORE": "0",
    "NoNewPrivileges": "yes",
}


def verify(text):
    """What systemd has to say. It wants the program to be there, which it is only once installed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / UNIT.name
        copy.write_text(text.replace(f"ExecStart={PROGRAM}", "ExecStart=/bin/true"))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(copy)], capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin", "SYSTEMD_LOG_LEVEL": "warning"}, check=False)
        return done.returncode, (done.stdout + done.stderr).strip()


def main():
    text = UNIT.read_text()
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read_string(text)
    problems = [f"{UNIT.name}: {key} is not {value}" for key, value in COUNTED_ON.items() if unit["Service"].get(key) != value]
    if f"ExecStart={PROGRAM}\n" not in text:
        problems.append(f"{UNIT.name}: does not start {PROGRAM}")
    code, said = verify(text)
    if code != 0 or said:
        problems.append(f"systemd-analyze verify: status {code}\n{said}")
    # Proof that it would have said something.
    code, said = verify(text.replace("KillMode=mixed", "KillMode=sideways\nNoSuchThing=yes"))
    if "NoSuchThing" not in said:
        problems.append("systemd-analyze verify takes anything: the lint is broken")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
