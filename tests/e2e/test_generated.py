#!/usr/bin/python3
"""`sallyport completion` and `manual`: whatever --help has is in them, and shells and man(1) take them."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness
from harness import EXIT_USAGE, SALLYPORT


def sallyport(*words, **run):
    return subprocess.run([SALLYPORT, *words], capture_output=True, text=True, **run)


def help_of(path):
    """(subcommands, options, positional words) as --help lists them."""
    found = {"Subcommands": [], "Options": [], "Positionals": []}
    part = None
    for line in sallyport(*path, "--help").stdout.splitlines():
        if line.rstrip(":") in found and line.endswith(":"):
            part = line.rstrip(":")
        elif not line:
            part = None
        elif part and (match := re.match(r"^  (\S+)", line)):
            found[part] += match[1].split(",")
    return tuple(found.values())


def all_commands(path=()):
    yield path
    for name in help_of(path)[0]:
        yield from all_commands((*path, name))


COMMANDS = list(all_commands())


class Generated(unittest.TestCase):
    maxDiff = None

    def test_there_are_commands_to_look_for(self):
        self.assertIn(("gateway", "start"), COMMANDS)
        self.assertIn("--socket", help_of(("gateway", "start"))[1])


class Manual(Generated):
    def page(self, *path):
        run = sallyport("manual", *path)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def rendered(self, text):
        """As man(1) shows it; groff warns of nothing."""
        groff = shutil.which("groff")
        self.assertIsNotNone(groff, "the tests need groff")
        run = subprocess.run([groff, "-man", "-ww", "-Tascii", "-P-c", "-P-b", "-P-u", "-rLL=200n"], input=text,
                             capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def test_every_command_has_a_page_with_all_of_its_options(self):
        for path in COMMANDS:
            with self.subTest(path):
                page = self.rendered(self.page(*path))
                subcommands, options, positionals = help_of(path)
                for option in options:
                    self.assertRegex(page, rf"(?m)^ +(?:.*, )?{re.escape(option)}\b")
                for word in positionals:
                    self.assertRegex(page, rf"(?m)^ +{word.upper()}(?: |$)")
                for name in subcommands:
                    self.assertIn("-".join(("sallyport", *path, name)) + "(1)", page)
                self.assertIn("-".join(("sallyport", *path)) + " - ", page)

    def test_what_the_help_says_besides_is_there(self):
        page = self.rendered(self.page())
        self.assertIn("EXIT CODES", page)
        self.assertIn("125 when Sallyport itself failed", page)
        self.assertIn("sallyport run [OPTIONS] -- COMMAND [ARGUMENT]...", self.rendered(self.page("run")))

    def test_all_pages_are_written_into_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            run = sallyport("manual", "--folder", folder)
            self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))
            written = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir()}
        self.assertEqual(written, {"-".join(("sallyport", *path)) + ".1": self.page(*path) for path in COMMANDS})

    def test_what_is_no_command_has_no_page(self):
        run = sallyport("manual", "no\x1bsuch")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (EXIT_USAGE, "", "sallyport: there is no command 'no\\x1bsuch'\n"))
        run = sallyport("manual", "--folder", "/nonexistent")
        self.assertEqual((run.returncode, run.stderr),
                         (harness.EXIT_SALLYPORT_FAILED, "sallyport: /nonexistent/sallyport.1 cannot be written\n"))


class Bash(Generated):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.script = self.folder / "sallyport"
        self.script.write_text(sallyport("completion", "bash").stdout)
        (self.folder / "a file").touch()
        (self.folder / "a folder").mkdir()
        stub = self.folder / "stub"
        stub.write_text("#!/bin/sh\ntest \"$1\" = list && printf 'NAME STATE\\nagent running\\nother ended\\n'\n")
        stub.chmod(0o755)

    def complete(self, *words):
        """What bash offers for the last of the words."""
        run = subprocess.run(
            ["bash", "-uc", 'source ./sallyport; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); complete -p sallyport >/dev/null; '
             '_sallyport; printf "%s\\n" "${COMPREPLY[@]}"', "bash", "./stub", *words],
            cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""), words)
        return set(run.stdout.splitlines()) - {""}

    def test_bash_can_read_it(self):
        run = subprocess.run(["bash", "-n", self.script], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_every_command_and_option_is_offered(self):
        for path in COMMANDS:
            subcommands, options, _ = help_of(path)
            with self.subTest(path):
                self.assertEqual({word for word in self.complete(*path, "-")}, set(options))
                if subcommands:
                    self.assertEqual({word for word in self.complete(*path, "") if not word.startswith("-")}, set(subcommands))

    def test_values_are_offered_by_their_kind(self):
        self.assertEqual(self.complete("gat"), {"gateway"})
        self.assertEqual(self.complete("run", "--policy", "a"), {"a file", "a folder"})
        self.assertEqual(self.complete("new", "--workspace", "a"), {"a folder"})
        self.assertEqual(self.complete("run", "--git", ""), set())
        self.assertEqual(self.complete("policy", "check", "a"), {"a file", "a folder"})
        self.assertEqual(self.complete("completion", ""), {"bash", "zsh", "fish", "-h", "--help"})
        self.assertEqual(self.complete("status", "a"), {"agent"})
        self.assertEqual(self.complete("stop", "agent", "o"), {"other"})
        self.assertEqual(self.complete("new", "--policy", "run", "--wo"), {"--workspace"})

    def test_behind_the_dashes_stands_a_command(self):
        self.assertIn("bash", self.complete("run", "--", "bas"))
        self.assertEqual(self.complete("exec", "agent", "--", "cat", "a"), {"a file", "a folder"})


class OtherShells(Generated):
    def test_every_command_and_option_occurs(self):
        for shell in ("zsh", "fish"):
            script = sallyport("completion", shell).stdout
            for path in COMMANDS:
                key = "".join("/" + name for name in path)
                here = (re.search(rf"(?ms)^    '{key}'\)\n(.*?)(?:^    '|\Z)", script)[0] if shell == "zsh" else
                        "\n".join(line for line in script.splitlines() if f'__sallyport_at "{key}"' in line))
                for option in help_of(path)[1]:
                    spelled = {"zsh": rf"'\*{option}\[", "fish": rf" -{'l' if option.startswith('--') else 's'} {option.lstrip('-')} "}
                    with self.subTest(shell=shell, path=path, option=option):
                        self.assertRegex(here, spelled[shell])
                for name in help_of(path)[0]:
                    self.assertRegex(here, {"zsh": rf"[( ]{name}\\:", "fish": rf" -a {name} "}[shell])

    def test_shells_that_are_there_can_read_them(self):
        for shell in ("zsh", "fish"):
            if shutil.which(shell):
                run = subprocess.run([shell, "-n"], input=sallyport("completion", shell).stdout, capture_output=True, text=True)
                self.assertEqual((run.returncode, run.stderr), (0, ""), shell)

    def test_other_shells_are_refused(self):
        run = sallyport("completion", "tcsh")
        self.assertEqual((run.returncode, run.stdout), (EXIT_USAGE, ""))
        self.assertIn("tcsh", run.stderr)


if __name__ == "__main__":
    harness.main()
