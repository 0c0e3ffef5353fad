"""Directories of Hugging Face, to be damaged."""
import os

from support import files
from support.tensors import encoded, read_header


class Folder:
    """A copy of a golden directory, to be damaged."""

    def __init__(self, path):
        self.path = path

    def at(self, name):
        return os.path.join(self.path, name)

    def text(self, name, text):
        files.write(self.at(name), text)

    def change(self, name, edit):
        """Edits the JSON of a file."""
        files.change_json(self.at(name), edit)

    def config(self, **changes):
        self.change("config.json", lambda config: config.update(changes))

    def without(self, key):
        self.change("config.json", lambda config: config.pop(key))

    def map(self, **changes):
        self.change("model.safetensors.index.json", lambda index: index["weight_map"].update(changes))

    def tensors(self, edit, name="model.safetensors"):
        header, data = read_header(self.at(name))
        files.write(self.at(name), encoded(header, edit(header, data) or data))

    def add(self, tensor, dtype, shape, raw):
        """Adds a tensor after the others."""
        def edit(header, data):
            header[tensor] = {"dtype": dtype, "shape": shape,
                              "data_offsets": [len(data), len(data) + len(raw)]}
            return data + raw
        self.tensors(edit)

    def copy_of(self, tensor):
        header, data = read_header(self.at("model.safetensors"))
        entry = header[tensor]
        begin, end = entry["data_offsets"]
        return entry["dtype"], entry["shape"], data[begin:end]
