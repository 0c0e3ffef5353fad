#!/usr/bin/env python3
"""Checks the prose of the documentation.

    pages.py SOURCE

In all pages: every relative link leads to a file, and its anchor to a heading.
README links, within two clicks, to pages that name every tool, file format and key.
In PAGES also: lines have at most 120 characters, no word of WORDS stands in the
prose, and paths in inline code exist. Rows of tables and blocks of code are exempt
from the length, since a row cannot be broken and output is shown as it is printed.
Paths begin with a folder of the repository or the page, or end like a source file.
"""
import glob
import os
import re
import sys

PAGES = ["README.md", "CONTRIBUTING.md", "docs/running.md", "docs/checkpoints.md",
         "docs/questions.md", "docs/glossary.md", "passes/Schedule/README.md", "runtime/README.md",
         "docs/hugging-face.md", "docs/machines.md", "docs/memory.md", "docs/placement.md", "test/README.md"]
LONGEST = 120
# What a page says instead: before, after, live buffers, contiguous, heartbeat, …
WORDS = ["in front of", "behind", "rests", "tenants?", "said at once", "parts of a sum",
         "row by row", "pulse", "twins?", "saver"]
FORMATS = ["metrics.jsonl", "summary.json", "loss.svg", "sample.txt", "run.lock",
           "manifest.json", "values.json", "step.so", "index.json", "committed", ".safetensors",
           ".distcp", "model.safetensors.index.json", "ids_mask_path", "placement_policy",
           '"rules"', "FSDP_TRACE"]
SOURCES = (".cpp", ".h", ".td", ".py", ".test", ".mlir", ".sh", ".cu", ".md")
LINK = r"\[[^\]]*\]\(([^)\s]+)\)"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def prose(text):
    """(number, line) outside of blocks of code."""
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            yield number, line


def anchors(text):
    """The anchors that GitHub gives to headings."""
    found = set()
    for _, line in prose(text):
        if re.match(r"#+ ", line):
            title = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(title.replace(" ", "-"))
    return found


def links(page, text):
    """(line, target file, anchor) of a page's relative links."""
    for number, line in prose(text):
        for target in re.findall(LINK, line):
            if not re.match(r"[a-z]+:", target):
                path, _, anchor = target.partition("#")
                path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                yield number, path, anchor


class Tree:
    def __init__(self, source):
        self.source, self.problems = source, []
        self.files = set()
        for folder, folders, names in os.walk(source):
            # Not what is built, whose folders have links in circles, nor hidden ones.
            folders[:] = [name for name in folders if not re.match(r"build|out$|\.|__", name)]
            self.files |= {os.path.relpath(os.path.join(folder, name), source) for name in names}
        self.names = {os.path.basename(name) for name in self.files}
        self.pages = {name: read(os.path.join(source, name))
                      for name in self.files if name.endswith(".md")}

    def check_links(self):
        count = 0
        for page, text in self.pages.items():
            for line, target, anchor in links(page, text):
                count += 1
                if not os.path.exists(os.path.join(self.source, target)):
                    self.problems.append(f"{page}:{line}: there is no {target}")
                elif anchor and anchor not in anchors(self.pages[target]):
                    self.problems.append(f"{page}:{line}: {target} has no heading #{anchor}")
        return count

    def check_prose(self, page):
        for number, line in prose(self.pages[page]):
            at = f"{page}:{number}"
            if len(line) > LONGEST and not line.startswith("|"):
                self.problems.append(f"{at}: {len(line)} characters; {LONGEST} are the most")
            plain = re.sub(r"`[^`]*`", "", line)
            for word in re.findall(rf"\b(?:{'|'.join(WORDS)})\b", plain, re.I):
                self.problems.append(f"{at}: '{word}' is not a term of ours")
            for name in re.findall(r"`([^`\s]+)`", line):
                if not self.exists(page, name):
                    self.problems.append(f"{at}: there is no {name}")

    def exists(self, page, name):
        """Whether a path exists; true of what is no path."""
        if "/" not in name:
            pattern = re.compile(r"[\w*-]+")
            return (not name.endswith(SOURCES) or not pattern.match(name) or name in self.names
                   )
        folder = os.path.dirname(page)
        known = {entry for entry in os.listdir(os.path.join(self.source, folder)) +
                 os.listdir(self.source) if not re.match("build|out", entry)}
        if name.split("/")[0] not in known:
            return True
        return any(glob.glob(os.path.join(self.source, base, name)) for base in (folder, ""))

    def check_reach(self):
        """What README leads to in two clicks."""
        first = {target for _, target, _ in links("README.md", self.pages["README.md"])}
        second = {target for page in first & set(self.pages)
                  for _, target, _ in links(page, self.pages[page])}
        near = "\n".join(self.pages[page] for page in (first | second) & set(self.pages))
        tools = {name.split("/")[1] for name in self.files if name.startswith("tools/fsdp-")}
        for tool in tools:
            if tool not in self.pages["README.md"]:
                self.problems.append(f"README.md does not name {tool}")
        for name in FORMATS:
            if name not in near:
                self.problems.append(f"README.md does not lead to {name} in two clicks")
        if "docs/reference/config.md" not in first:
            self.problems.append("README.md does not link the keys of a run")


def main():
    tree = Tree(sys.argv[1])
    count = tree.check_links()
    for page in PAGES:
        tree.check_prose(page)
    tree.check_reach()
    for problem in tree.problems:
        print(problem)
    print(f"{len(tree.pages)} pages, {count} links, {len(tree.problems)} problems")
    return bool(tree.problems)


if __name__ == "__main__":
    sys.exit(main())
