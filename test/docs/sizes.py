#!/usr/bin/env python3
"""Checks that files and functions stay short.

    sizes.py SOURCE

No C++ file outside test/ has more than 600 lines, and no function more than
60, from the first line of its head to its last brace. What an initialiser
between braces says is data and no function. TABLES names the functions that
are tables of data in the form of statements, each with its reason; one that
has become short, or is not there, is a problem too.
"""
import os
import re
import sys

from directions import ENDINGS, TREES

FILE_LINES, FUNCTION_LINES = 600, 60

# By name of the file, wherever it lies.
TABLES = {
    ("CompileOptions.h", "describe"): "a row for each key of [training]",
    ("RunConfig.h", "describe"): "a row for each key of [checkpoint]",
    ("ConfigKeys.cpp", "sharedKeys"): "a line for each key of config.json",
}

# Of what is neither code nor layout: comments, strings, characters, commands
# of the preprocessor. Of several that match, the first.
BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
SCOPE = re.compile(r'\b(?:namespace|class|struct|union|enum|extern)\b(?!.*\))', re.S)
# Lines that macros make functions of, and what is empty.
MACROS = re.compile(r"(?:\s*^[A-Z][A-Z_]+\([^;{}]*?\)$)*\s*", re.M)
INITIALISER = re.compile(r'(?:=|,|\(|\breturn)\s*$')


def blank(text):
    """The text with spaces for all of that; lines stay where they are."""
    return BLANKED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def matching(text, opening):
    """The place of the brace that closes this one."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, opening):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.start()
    raise ValueError("a brace is not closed")


def name_of(head):
    """"Trainer::run" of the head of a function."""
    head = re.sub(r"^template\s*<.*?>\s*(?=[\w\[])", "", head, flags=re.S)
    found = re.search(r"((?:\w+::)*(?:~?\w+|operator\s*[^\s\w(]+|operator\(\)))\s*\(", head)
    return found.group(1) if found else head.strip()


def functions_of(text):
    """Name, first line and number of lines of every function that is in none."""
    text, at, begin, found = blank(text), 0, 0, []
    while mark := re.compile(r"[{};]").search(text, at):
        at = mark.end()
        if mark.group() != "{":
            begin = at
            continue
        head = text[begin:mark.start()]
        if SCOPE.search(head) or INITIALISER.search(head) or ")" not in head:
            begin = at
            continue
        at = matching(text, mark.start()) + 1
        # A member between braces, before the body of a constructor.
        if re.match(r"\s*[,{]", text[at:]):
            continue
        first = begin + MACROS.match(head).end()
        found.append((name_of(text[first:mark.start()]), text.count("\n", 0, first) + 1,
                      text.count("\n", first, at) + 1))
        begin = at
    return found


def check(source):
    files, functions, problems, tables = 0, 0, [], dict(TABLES)
    for tree in TREES:
        for folder, _, names in sorted(os.walk(os.path.join(source, tree))):
            for name in sorted(names):
                if not name.endswith(ENDINGS):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                path, files = os.path.relpath(path, source), files + 1
                if text.count("\n") > FILE_LINES:
                    problems.append(f"{path} has {text.count(chr(10))} lines; {FILE_LINES} are the most")
                for function, line, lines in functions_of(text):
                    functions += 1
                    if lines > FUNCTION_LINES and not tables.pop((name, function), None):
                        problems.append(f"{path}:{line}: {function} has {lines} lines; "
                                        f"{FUNCTION_LINES} are the most")
    problems += [f"{name}: {function} is no long function; take it from TABLES"
                 for name, function in tables]
    return files, functions, problems


def main():
    files, functions, problems = check(sys.argv[1])
    for problem in problems:
        print(problem)
    print(f"{files} files, {functions} functions, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
