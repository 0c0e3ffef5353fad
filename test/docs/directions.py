#!/usr/bin/env python3
"""Checks that includes go the way that docs/architecture.md says.

    directions.py SOURCE

The table under "The house" names libraries, their files and what each stands
on. A file may include what its library stands on, directly or through others.
Libraries without MLIR include nothing of MLIR or LLVM, directly or through
others. Every folder that the table names is there, every C++ file of these
trees belongs to a library, and no two are called alike but those of the two
targets' runtimes.
"""
import fnmatch
import glob
import os
import re
import sys

TREES = ("include/fsdp", "lib", "dialects", "passes", "runtime", "tools")
ENDINGS = (".cpp", ".h", ".cu")


class Library:
    def __init__(self, cells):
        self.name, self.uses = cells[0], cells[2].split()
        self.places = re.findall(r"`([^`]+)`", cells[1])
        self.has_mlir = cells[3] == "yes"


def libraries_of(page):
    with open(page, encoding="utf-8") as file:
        section = file.read().split("\n## 6. ")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")]
            for line in section.splitlines() if line.startswith("| ")]
    return {row[0]: Library(row) for row in rows if row[0] != "library"}


def closure(name, libraries, path, problems):
    """What a library may include; a circle is a problem."""
    if name in path:
        problems.append("the table has a circle: " + " -> ".join(path + [name]))
        return set()
    if name not in libraries:
        problems.append(f"'{path[-1]}' stands on '{name}', which has no row")
        return set()
    found = {name}
    for used in libraries[name].uses:
        found |= closure(used, libraries, path + [name], problems)
    return found


def library_of(file, libraries):
    """The library with the longest place before the file."""
    best = (0, None)
    for library in libraries.values():
        for place in library.places:
            if file.startswith(place + "/") or fnmatch.fnmatch(file, place):
                best = max(best, (len(place), library.name))
    return best[1]


def files_of(source):
    files = {}
    for tree in TREES:
        for folder, _, names in os.walk(os.path.join(source, tree)):
            for name in names:
                if name.endswith(ENDINGS):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        files[os.path.relpath(path, source)] = re.findall(
                            r'^\s*#\s*include\s+["<]([^">]+)[">]', file.read(), re.M)
    return files


def resolve(file, include, files):
    beside = os.path.normpath(os.path.join(os.path.dirname(file), include))
    return next((path for path in (beside, "include/" + include, include, "tools/" + include)
                 if path in files), None)


def is_foreign(include):
    return include.startswith(("mlir/", "mlir-c/", "llvm/")) or include.endswith(".inc")


def mlir_through(file, files, seen):
    """The chain of includes by which a file has something of MLIR or LLVM."""
    seen.add(file)
    for include in files[file]:
        if is_foreign(include):
            return [file, include]
        target = resolve(file, include, files)
        if target and target not in seen:
            chain = mlir_through(target, files, seen)
            if chain:
                return [file] + chain
    return None


def alike(files):
    """The files that share a name with others; a kernel's .cu is as a .cpp."""
    found = {}
    for file in files:
        found.setdefault(os.path.basename(file).replace(".cu", ".cpp"), []).append(file)
    for same in found.values():
        targets = {"/".join(file.split("/")[:2]) for file in same}
        if len(same) > 1 and not (len(same) == 2 and targets == {"runtime/cpu", "runtime/cuda"}):
            yield sorted(same)


def check(source):
    libraries = libraries_of(os.path.join(source, "docs/architecture.md"))
    files, problems, includes = files_of(source), [], 0
    for library in libraries.values():
        problems += [f"'{place}' of '{library.name}' is not there" for place in library.places
                     if not glob.glob(os.path.join(source, place))]
    allowed = {name: closure(name, libraries, [], problems) for name in libraries}
    problems += [" and ".join(same) + " are called alike" for same in alike(files)]
    for file in sorted(files):
        own = library_of(file, libraries)
        if own is None:
            problems.append(f"{file} belongs to no library of the table")
            continue
        for include in files[file]:
            target = resolve(file, include, files)
            theirs = library_of(target, libraries) if target else None
            includes += theirs is not None
            if theirs is not None and theirs not in allowed[own]:
                problems.append(f"{file} includes {target}: '{own}' does not stand on '{theirs}'")
        chain = None if libraries[own].has_mlir else mlir_through(file, files, set())
        if chain:
            problems.append(f"{file} has MLIR: " + " -> ".join(chain))
    return libraries, includes, problems


def main():
    libraries, includes, problems = check(sys.argv[1])
    for problem in sorted(set(problems)):
        print(problem)
    print(f"{len(libraries)} libraries, {includes} includes, {len(set(problems))} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
