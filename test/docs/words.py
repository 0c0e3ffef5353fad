#!/usr/bin/env python3
"""Checks that the words of origins, paths and labels are taken apart in one place.

    words.py SOURCE

Addresses ("fwd layers.3.wq linear"), paths and labels ("layers.3.wq: linear") are
text for people. Only OWNERS make parts of them; others ask an origin for its phase,
path or op, and ModulePath.h for what a path says. In every other C++ file outside
test/ it is a problem to search or split text at a space, a dot, a number sign or a
colon, to compare a character with one of these, and to write a phase. EXEMPT names
what is about other text, with the reason; a line of it that nothing needs is a
problem too.
"""
import os
import re
import sys

from directions import ENDINGS, TREES

OWNERS = ("dialects/Fsdp/Origin.cpp", "dialects/NN/ModulePath.cpp")

# (file, what stands in the line): the reason.
EXEMPT = {
    ("dialects/Exec/RuntimeOps.cpp", "llvm::split(shape, ' ')"): "a shape of a record",
    ("dialects/Exec/RuntimeOps.cpp", "llvm::split(spec.shape, ' ')"): "a shape of a record",
    ("lib/Config/KeyNames.h", "name.find('.')"): "the key of an option",
    ("lib/Config/ConfigParse.cpp", "name.find('.')"): "the key of an option",
    ("lib/Config/MeshOption.cpp", "size.find(':')"): "the kind of a mesh axis",
    ("lib/Config/MeshOption.cpp", "axis.name.find(':')"): "the kind of a mesh axis",
    ("lib/Memory/Report.cpp", "c == '.'"): "the digits of a size",
    # It knows nothing of MLIR.
    ("lib/Schedule/Problem/Problem.cpp", 'kNames[] = {"fwd"'): "the phases of a problem",
    ("lib/Schedule/Problem/DecisionNumbers.cpp", "name.rfind('#')"): "the address of a decision",
    ("lib/Schedule/Problem/DecisionNumbers.cpp", "text.find(' ')"): "the address of a decision",
    ("tools/fsdp-checkpoint/Table.cpp", "row.find_last_not_of(' ')"): "a row of a table",
    ("tools/fsdp-checkpoint/Inspect.cpp", "entry.name.find('.')"): "a key of another's checkpoint",
    ("runtime/checkpoint/dcp/DcpMetadata.cpp", "box.file[0] == '.'"): "the name of a file",
    ("runtime/checkpoint/dcp/Pickle.cpp", "known[module.size()] == '.'"): "a module of Python",
    ("runtime/data/MixedDataset.cpp", "weight.find('.')"): "the digits of a weight",
    ("runtime/train/RooflinePeak.cpp", "name[at] == ' '"): "the name of a GPU",
    # A run has the artifact's table of names, and knows nothing of LLVM.
    ("runtime/core/Timeline.cpp", "address.find(' '"): "the layer in a trace",
    ("runtime/core/Timeline.cpp", "path.find('.'"): "the layer in a trace",
    ("runtime/core/Timeline.cpp", "path[next] == '.'"): "the layer in a trace",
}

COMMENTS = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.S)
CHARACTER = "'[ .#:]'"
MARK = rf'(?:{CHARACTER}|"(?:[ .#:]|: )")'
FOUND = re.compile("|".join((
    # split(text, '.'), text.rfind(' '), text.split(": ")
    rf"\b(?:r?split|r?find|find_(?:first|last)_(?:not_)?of|consume_(?:front|back))\s*\((?:[^();]|\(\))*?{MARK}",
    rf"[!=]=\s*{CHARACTER}",
    r'"(?:fwd|bwd)\b',
    r'"(?:again|update) ')))


def without_comments(text):
    """The text with spaces for comments; lines stay where they are."""
    return COMMENTS.sub(lambda match: match.group(1) or re.sub(r"[^\n]", " ", match.group()), text)


def check(source):
    files, problems, needed = 0, [], set()
    for tree in TREES:
        for folder, _, names in sorted(os.walk(os.path.join(source, tree))):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), source)
                if not name.endswith(ENDINGS) or path in OWNERS:
                    continue
                files += 1
                with open(os.path.join(source, path), encoding="utf-8") as file:
                    text = without_comments(file.read())
                for match in FOUND.finditer(text):
                    begin = text.rfind("\n", 0, match.start()) + 1
                    line = text[begin:text.find("\n", match.end())]
                    reasons = {key for key in EXEMPT if key[0] == path and key[1] in line}
                    needed |= reasons
                    if not reasons:
                        number = text.count("\n", 0, match.start()) + 1
                        problems.append(f"{path}:{number}: {' '.join(line.split())}: ask an origin "
                                        "(dialects/Fsdp/Origin.h) or a path (ModulePath.h)")
    problems += [f"{file}: nothing needs '{text}' in EXEMPT; take it out"
                 for file, text in EXEMPT if (file, text) not in needed]
    return files, problems


def main(source):
    files, problems = check(source)
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
