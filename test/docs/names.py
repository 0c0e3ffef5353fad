#!/usr/bin/env python3
"""Checks that what a guide names exists.

    names.py PAGE SOURCE

Inline code without spaces and with a slash or a file's ending is a path of the repository, or of
a file in a folder that the same item of the guide names; `*` and `<name>`
stand for any name. Other inline code that looks like C++ or TableGen must
occur in a file or folder that the item names. An item is a numbered step or a
paragraph.
"""
import glob
import os
import re
import sys

ENDINGS = (".cpp", ".h", ".td", ".def", ".py", ".mlir", ".test", ".json", ".md", ".toml", ".cu")


def items_of(page):
    with open(page, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```\n", "", file.read(), flags=re.M | re.S)
    return [(text.count("\n", 0, match.start()) + 1, match.group())
            for match in re.finditer(r"(?:^(?:\d+\. |[^\n]))(?:.+\n(?!\d+\. |\n))*.*\n?", text, re.M)]


def paths_of(name, source, folders):
    pattern = re.sub(r"<[^>]+>", "*", name)
    candidates = [pattern] + [os.path.join(folder, pattern) for folder in folders]
    for candidate in candidates:
        found = glob.glob(os.path.join(source, candidate))
        if found:
            return found
    return []


def text_of(paths):
    text = ""
    for path in paths:
        files = glob.glob(os.path.join(path, "**"), recursive=True) if os.path.isdir(path) else [path]
        for name in files:
            if os.path.isfile(name) and name.endswith(ENDINGS):
                with open(name, encoding="utf-8", errors="replace") as file:
                    text += file.read()
    return text


def occurs(symbol, text):
    """`a::b`, `lower*` and `create<Name>` match names of that form."""
    last = symbol.split("::")[-1]
    pattern = re.sub(r"\\\*|<[^>]+>", r"\\w+", re.escape(last))
    return re.search(rf"(?<!\w){pattern}(?!\w)", text)


def main():
    page, source = sys.argv[1:]
    problems = checked = 0
    for line, item in items_of(os.path.join(source, page)):
        names = re.findall(r"`([^`]+)`", item)
        is_path = lambda n: " " not in n and ("/" in n or n.endswith(ENDINGS))
        folders = [n for n in names if n.endswith("/")]
        paths = []
        for name in filter(is_path, names):
            found = paths_of(name, source, folders)
            checked += 1
            if not found:
                print(f"{page}:{line}: no file is named {name}")
                problems += 1
            paths += found
        text = text_of(paths)
        for name in names:
            if is_path(name) or not re.fullmatch(r"[A-Za-z_:*<>]+", name) or not paths:
                continue
            checked += 1
            if not occurs(name, text):
                print(f"{page}:{line}: {name} occurs in none of the files named there")
                problems += 1
    print(f"{page}: {checked} names, {problems} problems")
    return problems != 0


if __name__ == "__main__":
    sys.exit(main())
