#!/usr/bin/python3
"""Every command of the command line, word for word: what it prints, where, and how it ends; wrong input included.

A transcript is a file in transcripts/, played from its first line to its last on a stage of its own:

    # a remark
    $ sallyport list        a command line, as sh reads it; $WORK, $HOME ... are the stage's folders
    > standard output
    ! standard error
    ? 125                   the exit code, when it is not 0

<id>, <time>, <name> and <number> stand for what differs from run to run, <...> for anything within a line, and a line that is
`<lines>` alone for any number of lines. SALLYPORT_TEST_WRITE=1 writes the files anew, for a person to read the differences.
"""

import difflib
import os
import pathlib
import re
import shlex

import harness
from harness import SALLYPORT, E2E

FOLDER = pathlib.Path(__file__).resolve().parent / "transcripts"
PLACEHOLDERS = {"id": r"[0-9a-f]{12,32}", "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "name": r"[\w.-]+",
                "number": r"\d+", "...": r".*"}
# What a new transcript has in place of what differs.
DIFFERS = [(re.compile(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{12}\b|\b[0-9a-f]{16}\b"), "<id>"),
           (re.compile(PLACEHOLDERS["time"]), "<time>"), (re.compile(r"\bwork-[0-9a-f]{4}\b"), "<name>"),
           (re.compile(r"\b\d+ ms\b"), "<number> ms")]


class Step:
    """One command line, and what is expected of it."""

    def __init__(self, command):
        self.command = command
        self.remarks = []
        self.out, self.err, self.code = [], [], 0

    def lines(self):
        return [*self.remarks, "$ " + self.command, *(("> " + line).rstrip() for line in self.out),
                *(("! " + line).rstrip() for line in self.err), *([f"? {self.code}"] if self.code else [])]


def read(path):
    steps, remarks = [], []
    for line in path.read_text().splitlines():
        mark, text = line[:1], line[2:]
        if mark == "$":
            steps.append(Step(text))
            steps[-1].remarks, remarks = remarks, []
        elif mark == "?":
            steps[-1].code = int(text)
        elif mark in (">", "!"):
            (steps[-1].out if mark == ">" else steps[-1].err).append(text)
        else:
            remarks.append(line)
    return steps


def matches(expected, lines):
    """Whether these lines are the expected ones."""
    pattern = ""
    for line in expected:
        if line == "<lines>":
            pattern += r"(?:.*\n)*"
            continue
        for part in re.split(r"(<[a-z.]+>)", line):
            is_placeholder = part[1:-1] in PLACEHOLDERS and part.startswith("<")
            pattern += PLACEHOLDERS[part[1:-1]] if is_placeholder else re.escape(part)
        pattern += r"\n"
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in lines)) is not None


class Transcripts(E2E):
    def setUp(self):
        super().setUp()
        self.folders = {"WORK": self.stage.work, "HOME": self.stage.home, "RUNTIME": self.stage.runtime,
                        "STATE": self.stage.state, "CONFIG": self.stage.config, "ROOT": self.stage.root,
                        "BIN": harness.BIN_DIR}

    def with_names(self, text):
        """The stage's folders by their names, the deepest first."""
        for name, path in sorted(self.folders.items(), key=lambda entry: -len(str(entry[1]))):
            text = text.replace(str(path), "$" + name)
        return text

    def perform(self, step):
        script = "sallyport() { " + shlex.quote(str(SALLYPORT)) + ' "$@"; }\n' + step.command
        env = self.stage.environment(**{name: str(path) for name, path in self.folders.items() if name != "HOME"})
        outcome = self.stage.spawn(["bash", "-c", script], env=env).finish()
        self.account_for(outcome.events("refused"))
        done = Step(step.command)
        done.remarks = step.remarks
        done.out, done.err = (self.with_names(text).splitlines() for text in (outcome.stdout, outcome.stderr))
        done.code = outcome.code
        return done

    def play(self, name):
        path = FOLDER / name
        written = []
        for step in read(path):
            done = self.perform(step)
            same = done.code == step.code and matches(step.out, done.out) and matches(step.err, done.err)
            if not same and os.environ.get("SALLYPORT_TEST_WRITE"):
                for lines in (done.out, done.err):
                    for pattern, placeholder in DIFFERS:
                        lines[:] = [pattern.sub(placeholder, line) for line in lines]
            elif not same:
                self.fail(f"{name}: `{step.command}`\n" +
                          "\n".join(difflib.ndiff(step.lines(), done.lines())))
            written += (step if same else done).lines()
        if os.environ.get("SALLYPORT_TEST_WRITE"):
            path.write_text("\n".join(written) + "\n")

    def tearDown(self):
        self.stage.cli("gateway", "stop")
        for folder in (self.stage.runtime / "sallyport",):
            if folder.exists():
                folder.rmdir()
        super().tearDown()


def add_tests():
    for path in sorted(FOLDER.glob("*.txt")):
        setattr(Transcripts, "test_" + path.stem, lambda self, name=path.name: self.play(name))


class Coverage(harness.unittest.TestCase):
    def test_every_command_has_a_transcript_and_one_of_wrong_input(self):
        from test_generated import COMMANDS
        steps = [step for path in FOLDER.glob("*.txt") for step in read(path)]
        for command in COMMANDS:
            words = " ".join(("sallyport", *command))
            codes = {step.code for step in steps if (step.command + " ").startswith(words + " ")}
            with self.subTest(words):
                self.assertIn(harness.EXIT_USAGE, codes)
                # These go on until they are ended, or want a terminal or an engine: test_serve.py, test_logs.py,
                # test_adoption.py.
                if command not in (("serve",), ("attach",), ("adopt",)):
                    self.assertIn(0, codes)


add_tests()
if __name__ == "__main__":
    harness.main()
