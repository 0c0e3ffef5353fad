#!/usr/bin/env python3
"""Checks the prose that references, help and messages are made of.

    prose.py SOURCE

In the .td files of dialects/ and passes/: lines of descriptions have at most LONGEST
characters, and neither descriptions nor summaries nor options say a word of WORDS.
Blocks of code and rows of tables are exempt from the length, and code from both. The
texts beside options and the help of the tools say no such word either. Messages, the
other string literals of C++ files outside test/, say none of OURS.
"""
import os
import re
import sys

from directions import ENDINGS, TREES
from pages import LONGEST, WORDS
from words import without_comments

# What prose says instead: before, after, partial, split, storage placement, resumes from, …
OURS = ["in front of", "behind", "parts? of (?:a )?sums?", "(?:is|are|be|was) cut", "cuts? over",
        "at rest", "rests cut", "row by row", "said at once", "tenants?", "goes on from"]
# Where the texts beside options and the help of the tools stand.
HELP = ("include/fsdp/Config/", "lib/Config/ConfigTorchtitan.cpp", "lib/Config/ConfigReference.cpp",
        "tools/")

LITERAL = r'"(?:\\.|[^"\\\n])*"'
# Adjacent literals are one text; others are skipped with their quotes.
TEXT = re.compile(rf"R\"\((.*?)\)\"|'(?:\\.|[^'\\\n])'|({LITERAL}(?:\s*{LITERAL})*)", re.S)
PROSE = re.compile(r"(?:(?:description|prose)\s*=|InterfaceMethod<)\s*\[\{(.*?)\}\]", re.S)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)


def literals(text):
    """(position, text) of strings with a space."""
    for match in TEXT.finditer(text):
        said = match.group(1)
        if match.group(2):
            said = "".join(part[1:-1] for part in re.findall(LITERAL, match.group(2)))
        if said and " " in said.strip():
            yield match.start(), said


class Checker:
    def __init__(self, source):
        self.source, self.problems = source, []
        self.descriptions = self.texts = 0

    def say(self, path, text, position, what):
        line = text.count("\n", 0, position) + 1
        self.problems.append(f"{path}:{line}: {what}")

    def check_words(self, path, text, position, said, words):
        plain = CODE.sub("", said.replace("\\n", "\n"))
        for word in re.findall(rf"(?<![\w.])(?:{'|'.join(words)})\b", plain, re.I):
            self.say(path, text, position, f"'{word}' is not a term of ours")

    def check_record(self, path, text):
        """A .td file."""
        for match in PROSE.finditer(text):
            self.descriptions += 1
            self.check_words(path, text, match.start(), match.group(1), [*WORDS, *OURS])
            code, position = False, match.start(1)
            for line in match.group(1).split("\n"):
                code ^= line.lstrip().startswith("```")
                if len(line) > LONGEST and not code and not line.lstrip().startswith("|"):
                    self.say(path, text, position, f"{len(line)} characters; {LONGEST} are the most")
                position += len(line) + 1
        rest = re.sub(r"\[\{.*?\}\]", lambda block: "\n" * block.group().count("\n"), text, flags=re.S)
        self.check_literals(path, rest, [*WORDS, *OURS])

    def check_literals(self, path, text, words):
        for position, said in literals(text):
            self.texts += 1
            self.check_words(path, text, position, said, words)

    def run(self):
        for tree in TREES:
            for folder, _, names in sorted(os.walk(os.path.join(self.source, tree))):
                for name in sorted(names):
                    path = os.path.relpath(os.path.join(folder, name), self.source)
                    if not name.endswith((*ENDINGS, ".td")):
                        continue
                    with open(os.path.join(self.source, path), encoding="utf-8") as file:
                        text = without_comments(file.read())
                    if name.endswith(".td"):
                        self.check_record(path, text)
                    else:
                        isHelp = path.startswith(HELP)
                        self.check_literals(path, text, [*WORDS, *OURS] if isHelp else OURS)


def main(source):
    checker = Checker(source)
    checker.run()
    for problem in checker.problems:
        print(problem)
    print(f"{checker.descriptions} descriptions, {checker.texts} texts, "
          f"{len(checker.problems)} problems")
    return bool(checker.problems)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
