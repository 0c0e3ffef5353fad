"""Runs an artifact with one damaged file of matmul algorithms after another.

    matmul_files.py FILE COMMAND...

Each must end the run with a message that names the file. FILE is as before
afterwards."""
import json
import os
import subprocess
import sys


def damaged(text):
    table = json.loads(text)

    def changed(**entry):
        rows = [dict(table["matmuls"][0], **entry), *table["matmuls"][1:]]
        return json.dumps(dict(table, matmuls=rows))

    algorithm = table["matmuls"][0]["algorithm"]
    yield "empty", ""
    yield "cut off", text[:len(text) // 2]
    yield "no object", "[]"
    yield "of no GPU", json.dumps({k: v for k, v in table.items() if k != "gpu"})
    yield "of no version", json.dumps(dict(table, cublaslt="all"))
    yield "no list", json.dumps(dict(table, matmuls={}))
    yield "twice", text.replace('"gpu"', '"matmuls": [], "gpu"')
    yield "deep", "[" * 100000
    yield "a number for an entry", json.dumps(dict(table, matmuls=[7]))
    yield "a number for an algorithm", changed(algorithm=7)
    yield "a short algorithm", changed(algorithm=algorithm[:-1])
    yield "a long algorithm", changed(algorithm=algorithm + "0")
    yield "an algorithm with a sign", changed(algorithm="-" + algorithm[1:])
    yield "an algorithm of zeros", changed(algorithm="0" * len(algorithm))


def main():
    place, *command = sys.argv[1:]
    with open(place) as file:
        good = file.read()
    count = 0
    for name, text in damaged(good):
        with open(place, "w") as file:
            file.write(text)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = place in done.stdout
        if done.returncode != 1 or not said:
            sys.exit(f"{name}: status {done.returncode}: {done.stdout}")
        count += 1
    os.remove(place)
    os.mkfifo(place)  # must not be waited for
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    os.remove(place)
    if done.returncode != 1 or "is no regular file" not in done.stdout:
        sys.exit(f"a pipe: status {done.returncode}: {done.stdout}")
    count += 1
    with open(place, "w") as file:
        file.write(good)
    print(f"{count} damaged files are refused")


if __name__ == "__main__":
    main()
