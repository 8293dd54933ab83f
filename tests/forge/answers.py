"""tests/data/upstream_answers.txt, whose first lines describe its form."""

import pathlib
import re
import typing

FILE = pathlib.Path(__file__).resolve().parent.parent / "data/upstream_answers.txt"

_ESCAPES = {"r": "\r", "n": "\n", "t": "\t", "0": "\0"}


class Answer(typing.NamedTuple):
    outcome: str
    end: str
    name: str
    data: bytes

    @property
    def status(self):
        """Of the final head, where there is one that can be read."""
        codes = [int(code) for code in re.findall(rb"^HTTP/1\.[01] (\d{3})", self.data, re.MULTILINE)]
        return next((code for code in codes if code >= 200), None)


def _expand(text, words):
    while braced := re.search(r"\{(?:(\w+)|(\d+)\*([^{}]*))\}", text):
        word, times, repeated = braced.groups()
        text = text[:braced.start()] + (words[word] if word else int(times) * repeated) + text[braced.end():]
    return text


def _unescaped(text):
    def char(escape):
        code = escape.group(1)
        return chr(int(code[1:], 16)) if code[0] == "x" else _ESCAPES.get(code, code)
    return re.sub(r"\\(x[0-9a-f]{2}|.)", char, text).encode("latin-1")


def read():
    words, answers = {}, []
    for line in FILE.read_text().splitlines():
        if line.startswith("= "):
            _, name, text = line.split(None, 2)
            words[name] = text
        elif line and not line.startswith("#"):
            what, text = re.match(r"([^:]*):(?: (.*))?$", line).groups()
            outcome, end, name = what.split(" ")
            answers.append(Answer(outcome, end, name, _unescaped(_expand(text or "", words))))
    return answers
