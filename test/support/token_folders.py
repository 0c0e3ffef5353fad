"""Token folders, as tools/fsdp-tokenize writes them, without their masks."""
import array
import json
import pathlib
import shutil


def read(folder):
    """(ids, where each document begins)."""
    folder = pathlib.Path(folder)
    ids = array.array("H")
    for shard in json.loads((folder / "tokens.json").read_text())["shards"]:
        ids.frombytes((folder / shard["file"]).read_bytes())
    return ids, [*array.array("Q", (folder / "documents.bin").read_bytes())]


def write(model, folder, ids, starts):
    """Documents with the tokenizer of the folder `model`; all ids are labels."""
    model, folder = pathlib.Path(model), pathlib.Path(folder)
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("ids-*", "mask-*"))
    (folder / "ids-00000.bin").write_bytes(ids.tobytes())
    (folder / "documents.bin").write_bytes(array.array("Q", starts).tobytes())
    description = json.loads((model / "tokens.json").read_text())
    description.update(
        tokens=len(ids), documents=len(starts), labels=len(ids),
        shards=[{"tokens": len(ids), "file": "ids-00000.bin", "bytes": 2 * len(ids),
                 "xxh3": "0" * 16}])
    description["document_starts"]["bytes"] = 8 * len(starts)
    (folder / "tokens.json").write_text(json.dumps(description))
    return folder
