"""Copies a checkpoint of torch.distributed.checkpoint; in its .metadata the first
tensor has its first box many times more, by memo.

usage: repeat_box.py FROM TO TIMES"""
import pickletools
import shutil
import sys


def main():
    source, target, times = sys.argv[1:]
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    with open(f"{target}/.metadata", "rb") as file:
        text = file.read()
    operations = list(pickletools.genops(text))
    end = next(at for op, _, at in operations if op.name == "APPENDS")
    # The box is the object that the last one before the list's end builds.
    kinds = [(op.name, argument, at) for op, argument, at in operations]
    memo = -1
    box = None
    for i, (name, _, at) in enumerate(kinds):
        if name == "MEMOIZE":
            memo += 1
            # An object is in the memo before its state is set.
            if kinds[i - 1][0] == "NEWOBJ" and at < end:
                box = memo
    # Without its FRAME, which says a length.
    assert text[2:3] == b"\x95" and box < 256
    with open(f"{target}/.metadata", "wb") as file:
        file.write(text[:2] + text[11:end] + bytes([ord("h"), box]) *
                   int(times) + text[end:])


main()
