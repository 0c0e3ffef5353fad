#!/usr/bin/env python3
"""Checks the prose of the documentation.

    pages.py SOURCE

In all pages: every relative link leads to a file, and its anchor to a heading.
README links, within two clicks, to pages that name every tool, file format and key.
The pipeline in architecture has every pass.

In PAGES also: lines have at most 120 characters, no word of WORDS stands in the prose,
and what inline code names exists: paths, passes, tools, keys of a run, our variables of
the environment and macros. Rows of tables and blocks of code are exempt from the length,
since a row cannot be broken and output is shown as it is printed. Paths begin with a
folder of the repository or the page, or end like a source file. Links, words and inline
code may go over the end of a line.
"""
import fnmatch
import glob
import os
import re
import sys

PAGES = ["README.md", "CONTRIBUTING.md", "docs/running.md", "docs/checkpoints.md",
         "docs/questions.md", "docs/glossary.md", "passes/Schedule/README.md", "runtime/README.md",
         "docs/data.md", "docs/hugging-face.md", "docs/machines.md", "docs/memory.md", "docs/placement.md",
         "docs/simulation.md",
         "test/README.md", "docs/architecture.md", "docs/tutorial.md", "docs/extending.md", "docs/performance.md",
         "docs/status.md", "docs/migration.md", "docs/measurements/README.md",
         "test/golden/README.md", "dialects/NN/README.md", "dialects/Fsdp/README.md",
         "dialects/Exec/README.md"]
LONGEST = 120
# What a page must not say: what it says instead. Inline code is exempt: it quotes names.
# Not here, because most of their uses are ordinary English: "point" (decision point),
# "whole" but for a factor of a sharding rule, "word" but for a progress counter, "part"
# (shard), "plain" but for attention, "hold", "place", "stand" and the verb "meet".
WORDS = {
    "in front": "before",
    "behind": "after",
    "cuts?|cutting": "shard, split; truncated of a file",
    "rests|(?:parameters?|gradients?|states?|it|they) rest": "storage placement, is stored",
    "makes": "produces, gives, turns into",
    "parts? of (?:a|the) sum": "partial",
    "row by row": "contiguous in row-major order",
    "said at once": "reported together",
    "beats?|pulses?": "heartbeat",
    "(?:progress|writes? (?:a|its|the)) words?": "progress counter",
    "meetings?": "rendezvous",
    "start points?": "resume point",
    "savers?": "checkpointer",
    "ceilings?": "roofline peak",
    "tenants?": "live buffers",
    "outcomes?": "semantic digest",
    "packets?": "vectorised access",
    "plain attention": "reference attention",
    "twins?": "host builds",
    "(?:must|has to|have to|to) be whole|whole factors?": "needs-replication factor",
    "choices": "overrides",
    "intervals?(?! arithmetic)": "buffer, live range",
}
FORMATS = ["metrics.jsonl", "summary.json", "loss.svg", "sample.txt", "run.lock",
           "manifest.json", "values.json", "step.so", "index.json", "committed", ".safetensors",
           ".distcp", "model.safetensors.index.json", "ids_mask_path", "placement_policy",
           '"rules"', "FSDP_TRACE"]
SOURCES = (".cpp", ".h", ".td", ".py", ".test", ".mlir", ".sh", ".cu", ".md")
CODE = (".cpp", ".h", ".def", ".cu", ".py", ".sh")
# Of a form that our keys have: files, and a name of PyTorch's.
NO_KEYS = {"sample.txt", "model.pt2", "model.safetensors", "lr_scheduler.last_epoch"}
LINK = r"\[[^\]]*\]\(([^)\s]+)\)"
COMPONENT = r"(?:nn|fsdp|exec)-[a-z-]+"
# A pipeline, and programs without a folder in tools/.
OTHER_COMPONENTS = {"fsdp-train", "fsdp-rank-cpu", "fsdp-rank-cuda", "fsdp-calibrate-cpu",
                    "fsdp-fake-device"}


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


def paragraphs(text):
    """(number of the first line, lines) of what stands between empty lines and blocks of
    code; a row of a table stands alone."""
    start, lines, last = 0, [], 0
    for number, line in prose(text):
        if lines and (number != last + 1 or not line.strip() or line.startswith("|")
                      or lines[-1].startswith("|")):
            yield start, "\n".join(lines)
            lines = []
        if line.strip():
            start = start if lines else number
            lines.append(line)
        last = number
    if lines:
        yield start, "\n".join(lines)


def found_in(pattern, text, flags=0):
    """(line, match) of a pattern in the paragraphs of a page."""
    for start, paragraph in paragraphs(text):
        for match in re.finditer(pattern, paragraph, flags):
            yield start + paragraph.count("\n", 0, match.start()), match


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
    for line, match in found_in(LINK, text):
        target = match.group(1)
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            yield line, path, anchor


def without_code(text):
    """The text without inline code and targets of links; lines stay where they are."""
    return re.sub(r"`[^`]*`|\]\([^)\s]*\)", lambda found: re.sub(r"[^\n]", " ", found.group()), text)


class Tree:
    def __init__(self, source):
        self.source, self.problems = source, []
        self.files = set()
        for folder, folders, names in os.walk(source):
            # Not what is built, whose folders have links in circles, nor hidden ones.
            folders[:] = [name for name in folders if not re.match(r"build|out$|\.|__", name)]
            self.files |= {os.path.relpath(os.path.join(folder, name), source) for name in names}
        self.names = {os.path.basename(name) for name in self.files}
        self.pages = {name: self.text(name) for name in self.files if name.endswith(".md")}
        reference = self.pages["docs/reference/passes.md"]
        self.passes = set(re.findall(r"^### `-([\w-]+)`", reference, re.M))
        self.components = self.passes | {name.split("/")[1] for name in self.files if name.startswith("tools/fsdp-")}
        self.components |= OTHER_COMPONENTS
        for name in self.files:
            if name.startswith("test/") and name.endswith("CMakeLists.txt"):
                self.components |= set(re.findall(r"\bfsdp-unit-[\w-]+", self.text(name)))
        self.keys = {f"{section}.{key}" for section, rows in re.findall(
            r"^### .*?\[(\w+)\]\n(.*?)(?=^#|\Z)", self.pages["docs/reference/config.md"], re.M | re.S)
                     for key in re.findall(r"^\|`(\w+)`", rows, re.M)}
        self.sections = {key.split(".")[0] for key in self.keys}
        self.variables = {variable for name in self.files if name.endswith(CODE)
                          for variable in re.findall(r"(?:[\"'{$]|#define )(FSDP_[A-Z_0-9]+)", self.text(name))}

    def text(self, name):
        return read(os.path.join(self.source, name))

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
        text = self.pages[page]
        for number, line in prose(text):
            if len(line) > LONGEST and not line.startswith("|"):
                self.problems.append(f"{page}:{number}: {len(line)} characters; {LONGEST} are the most")
        for start, paragraph in paragraphs(text):
            plain = without_code(paragraph)
            for word, instead in WORDS.items():
                pattern = rf"\b(?:{word})\b".replace(" ", r"\s+")
                for match in re.finditer(pattern, plain, re.I):
                    line = start + plain.count("\n", 0, match.start())
                    said = " ".join(match.group().split())
                    self.problems.append(f"{page}:{line}: '{said}' is not a term of ours: {instead}")
        for line, match in found_in(r"`([^`]+)`", text):
            name = " ".join(match.group(1).split())
            self.problems += [f"{page}:{line}: {problem}" for problem in self.unknown(page, name)]

    def unknown(self, page, name):
        """What inline code names and is not there."""
        if re.fullmatch(COMPONENT, name) and name not in self.components:
            yield f"no pass and no tool is called {name}"
        elif " " not in name and not self.exists(page, name):
            yield f"there is no {name}"
        for key in re.findall(r"(?:^|--)([a-z]\w*\.[a-z]\w*)(?![\w./])", name):
            if key.split(".")[0] in self.sections and key not in self.keys | NO_KEYS:
                yield f"there is no key {key}"
        for variable in sorted(set(re.findall(r"\bFSDP_[A-Z_0-9]+", name)) - self.variables):
            yield f"nothing reads {variable}"

    def exists(self, page, name):
        """Whether a path exists; true of what is no path. `<Name>` stands for any name."""
        name = re.sub(r"<[^>]+>", "*", name)
        if "/" not in name:
            pattern = re.compile(r"[\w*-]+")
            return (not name.endswith(SOURCES) or not pattern.match(name) or
                    bool(fnmatch.filter(self.names, name)))
        folder = os.path.dirname(page)
        known = {entry for entry in os.listdir(os.path.join(self.source, folder)) +
                 os.listdir(self.source) if not re.match("build|out", entry)}
        if name.split("/")[0] not in known:
            return True
        return any(glob.glob(os.path.join(self.source, base, name)) for base in (folder, ""))

    def check_pipeline(self):
        """Architecture's pipeline has the passes, each under its name."""
        text, listed = self.pages["docs/architecture.md"], set()
        begin, end = text.index("\n## 2. "), text.index("\n## 3. ")
        for match in re.finditer(rf"^ +({COMPONENT}) ", text[begin:end], re.M):
            name, line = match.group(1), text.count("\n", 0, begin + match.start()) + 1
            listed.add(name)
            if name not in self.passes:
                self.problems.append(f"docs/architecture.md:{line}: no pass is called {name}")
        self.problems += [f"docs/architecture.md: the pipeline lacks {name}"
                          for name in sorted(self.passes - listed)]

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
    tree.check_pipeline()
    tree.check_reach()
    for problem in tree.problems:
        print(problem)
    print(f"{len(tree.pages)} pages, {count} links, {len(tree.problems)} problems")
    return bool(tree.problems)


if __name__ == "__main__":
    sys.exit(main())
