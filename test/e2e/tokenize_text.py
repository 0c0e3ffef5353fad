"""tools/fsdp-tokenize: the golden folder to the byte with any number of workers,
the ids of the package for awkward strings and back by the table, damaged input.

usage: tokenize_text.py SOURCE WORKDIR"""
import array
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys

import tokenizers

from support import commands
from support.commands import expect
from support.waiting import wait_until

SOURCE, WORK = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
GOLDEN = SOURCE / "test" / "golden" / "tokens"
TOKENIZER = GOLDEN / "tokenizer"
PIECES = ("a", "ab", " ", "  ", "\n", "\r\n", "\t", "\0", "é", "e\u0301", "ß", "漢字", "한글",
          "\U0001f642", "\U0001f469\u200d\U0001f680", "\u202e", "\ufeff", "\uffff", "<|end|>",
          "<|user|>", "Ġ", "Ċ", "0", "123", "one and two", "'s", "…", "\x7f", "\\", "{{", "%}")


def tokenize(*arguments):
    return commands.run(sys.executable, SOURCE / "tools" / "fsdp-tokenize", *map(str, arguments))


def fail(message, *arguments):
    said = commands.fail([sys.executable, SOURCE / "tools" / "fsdp-tokenize",
                          *map(str, arguments)])
    expect(message in said and "Traceback" not in said, f"{message}: {said}")
    expect(not (WORK / "none").exists() and not list(WORK.glob(".none*")),
           f"something was written: {said}")


def files(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def compare_golden():
    for workers in (1, 3):
        out = WORK / f"golden{workers}"
        tokenize("--tokenizer", TOKENIZER, "--shard-tokens", "1500", "--workers", workers, "-o",
                 out, GOLDEN / "documents.jsonl")
        expect(files(out) == files(GOLDEN / "folder"), f"{workers} workers: another folder")
        tokenize("--verify", out)
    damaged = WORK / "golden1"
    ids = bytearray((damaged / "ids-00001.bin").read_bytes())
    ids[3] ^= 1
    (damaged / "ids-00001.bin").write_bytes(ids)
    fail("ids-00001.bin: its bytes are not those that were written", "--verify", damaged)


def awkward_strings():
    draw = random.Random(1)
    strings = list(PIECES)
    while len(strings) < 2000:
        strings.append("".join(draw.choices(PIECES, k=draw.randrange(1, 30))))
    return strings


def compare_strings():
    """Ids are the package's, and the bytes of the table give the text again."""
    strings = awkward_strings()
    path = WORK / "strings.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in strings))
    tokenize("--tokenizer", TOKENIZER, "-o", WORK / "strings", path)
    ids = array.array("H", (WORK / "strings" / "ids-00000.bin").read_bytes())
    starts = array.array("Q", (WORK / "strings" / "documents.bin").read_bytes())
    table = (WORK / "strings" / "table.bin").read_bytes()
    count = struct.unpack_from("<Q", table)[0]
    places = struct.unpack_from(f"<{count + 1}Q", table, 8)
    texts = table[8 * (count + 2):]
    package = tokenizers.Tokenizer.from_file(str(TOKENIZER / "tokenizer.json"))
    end = package.token_to_id("<|end|>")
    expect(len(starts) == len(strings), "documents are missing")
    for i, text in enumerate(strings):
        mine = list(ids[starts[i]:starts[i + 1] if i + 1 < len(starts) else len(ids)])
        ids_of_package = package.encode(text).ids
        if ids_of_package[-1] != end:
            ids_of_package.append(end)
        expect(mine == ids_of_package, f"{text!r}: {mine} instead of {ids_of_package}")
        back = b"".join(texts[places[id]:places[id + 1]] for id in mine).decode()
        expect(back in (text, text + "<|end|>"), f"{text!r} is {back!r} by the table")
    return len(strings)


LINES = {
    "{": "Expecting property name", "[1]": "expected an object", "3": "expected an object",
    "null": "expected an object", "nonsense": "Expecting value", '{"text": 3}': '"text" is no text',
    '{"text": null}': '"text" is no text', '{"txt": "a"}': '"text" is no text',
    '{"prompt": "a"}': '"completion" is no text', '{"completion": "a"}': '"prompt" is no text',
    '{"prompt": 1, "completion": "a"}': '"prompt" is no text',
    '{"messages": []}': "no list of messages", '{"messages": "hi"}': "no list of messages",
    '{"messages": [3]}': 'a message has no "role"',
    '{"messages": [{"content": "a"}]}': 'a message has no "role"',
    '{"messages": [{"role": 3, "content": "a"}]}': 'a message has no "role"',
    '{"text": "a"} trailing': "Extra data", '{"text": "a"': "Expecting",
}
TEMPLATES = {
    "{% for": "the chat template: ", "{{ raise_exception('no system') }}": "no system",
    "{{ nothing.there.at.all }}": "the chat template: ", "{{ 1 / 0 }}": "division by zero",
    "{{ messages.__class__.__mro__[1].__subclasses__() }}": "the chat template: ",
    "{% if messages|length > 1 %}x{% endif %}{{ messages[0].content }}": "written",
}


def refuse_input():
    count = 0
    good = json.dumps({"text": "one and two"})
    for line, message in LINES.items():
        path = WORK / "bad.jsonl"
        path.write_text(f"{good}\n\n{line}\n{good}\n")
        fail(f"{path}:3: ", "--tokenizer", TOKENIZER, "-o", WORK / "none", path)
        fail(message, "--tokenizer", TOKENIZER, "-o", WORK / "none", path)
        count += 1
    path.write_bytes(b'{"text": "\xff"}\n')
    fail("it is no UTF-8", "--tokenizer", TOKENIZER, "-o", WORK / "none", path)
    for text, message in (("", "there are no documents"), ('{"text": ""}\n', "there are no documents"),
                          ('{"prompt": "a", "completion": ""}\n', None)):
        path.write_text(text)
        if message:
            fail(message, "--tokenizer", TOKENIZER, "-o", WORK / "none", path)
    fail("there is no such file", "--tokenizer", TOKENIZER, "-o", WORK / "none", WORK / "no*")
    path.write_text(good)
    fail("it exists", "--tokenizer", TOKENIZER, "-o", WORK / "golden3", path)
    fail("there is no folder", "--tokenizer", TOKENIZER, "-o", WORK / "no" / "none", path)
    fail("tokenizer.json", "--tokenizer", WORK, "-o", WORK / "none", path)
    (WORK / "tokenizer.json").write_text("{}")
    fail("the package 'tokenizers' cannot read it", "--tokenizer", WORK, "-o", WORK / "none", path)
    return count + 8


def refuse_templates():
    folder = WORK / "templates"
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes((TOKENIZER / "tokenizer.json").read_bytes())
    path = WORK / "chat.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "a"},
                                             {"role": "assistant", "content": "b"}]}))
    fail("has no chat template", "--tokenizer", folder, "-o", WORK / "none", path)
    for text, message in TEMPLATES.items():
        (folder / "chat_template.jinja").write_text(text)
        if message == "written":
            message = "writes an answer differently if it is not the last"
        fail(message, "--tokenizer", folder, "-o", WORK / "none", path)
    return len(TEMPLATES) + 1


def interrupt():
    """Ctrl-C leaves nothing behind."""
    path = WORK / "large.txt"
    path.write_text("one and two are three\n" * 400000)
    lines = WORK / "large.jsonl"
    lines.write_text((json.dumps({"text": path.read_text()[:100000]}) + "\n") * 400)
    process = subprocess.Popen(
        [sys.executable, SOURCE / "tools" / "fsdp-tokenize", "--tokenizer", TOKENIZER, "-o",
         WORK / "none", lines], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: process.poll() is not None or list(WORK.glob(".none*/ids-*")),
               "a folder is being written")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    expect(process.returncode == 1 and "interrupted; nothing was written" in errors, errors)
    expect(not (WORK / "none").exists() and not list(WORK.glob(".none*")), "something is left")


def main():
    compare_golden()
    strings = compare_strings()
    refused = refuse_input() + refuse_templates()
    interrupt()
    expect(tokenize("--tokenizer", TOKENIZER, "--prompt", "one and two").strip() ==
           ",".join(map(str, tokenizers.Tokenizer.from_file(
               str(TOKENIZER / "tokenizer.json")).encode("one and two").ids)), "another prompt")
    print(f"{strings} strings, {refused} inputs refused")


main()
