#!/usr/bin/env python3
"""Compares the records of runtime operations with the runtime's header.

    runtime_header.py RECORDS.json HEADER

RECORDS.json is what llvm-tblgen --dump-json makes of ExecOps.td. Every record
must have a declaration with its name, and types and names of its parameters in
its order; every declaration that takes a context and a stream must have a
record, but for order between streams and launches, which are no operations."""
import json
import re
import sys

NO_OPERATION = {"record", "wait", "launch", "launchColumns"}


def declarations(header):
    """{function: [(type, name)]} of what takes a context first."""
    text = re.sub(r"//.*", "", header)
    found = {}
    for name, parameters in re.findall(r"^void (\w+)\((.*?)\);", text, re.M | re.S):
        pairs = [re.fullmatch(r"(.*?)\s*(\w+)", parameter.strip(), re.S).groups()
                 for parameter in parameters.split(",")]
        if pairs[0] == ("Context &", "c"):
            found[name] = [(re.sub(r"\s+", " ", kind), name) for kind, name in pairs[1:]]
    return found


def recorded(records):
    """{function: [(type, name)]} of the records."""
    found = {}
    for op in records["!instanceof"]["Exec_RuntimeOp"]:
        arguments = [records[argument["def"]] for argument in records[op]["call"]]
        found[records[op]["runtimeFunction"]] = [(a["type"], a["name"]) for a in arguments]
    return found


def problems(records, declared):
    for function, wanted in records.items():
        if function not in declared:
            yield f"{function}: has a record, but no declaration"
            continue
        stream, *given = declared[function]
        if stream[0] != "Stream":
            yield f"{function}: takes no stream"
        # clang-format writes `T *name`.
        plain = [(kind.replace(" *", "*").replace(" &", "&"), name) for kind, name in wanted]
        given = [(kind.replace(" *", "*").replace(" &", "&"), name) for kind, name in given]
        if plain != given:
            yield f"{function}: the record has {plain}, the header {given}"
    for function in sorted(declared.keys() - records.keys() - NO_OPERATION):
        yield f"{function}: is declared, but has no record"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        records = recorded(json.load(file))
    with open(sys.argv[2], encoding="utf-8") as file:
        declared = declarations(file.read())
    found = list(problems(records, declared))
    print("\n".join(found))
    print(f"{len(records)} operations, {len(found)} problems")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
