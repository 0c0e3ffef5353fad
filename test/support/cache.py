"""Artifacts that several tests compile with the same settings are compiled once.

lit.cfg.py names the folder in FSDP_TEST_CACHE; without it, as under
FSDP_TEST_NO_CACHE=1, everything is compiled anew. An entry is found by the whole
command line, the contents of the files that it names, and the contents of the
compiler, its libraries, the runtime, its headers, g++ and nvcc. Tests get
copies, which they may change. Files that only a file names are not looked at.

Not for tests about artifacts, compiling, determinism or bad input."""
import fcntl
import functools
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from support import commands

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What compilers and libraries read besides their arguments.
VARIABLES = re.compile(r"C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|CPATH|LIBRARY_PATH|COMPILER_PATH|"
                       r"GCC_\w+|NVCC_\w+|LD_\w+|OMP_\w+|ONEDNN_\w+|DNNL_\w+")


#===------------------------------------------------------------------------===#
# What an entry depends on
#===------------------------------------------------------------------------===#

def files_below(path):
    """The file, or all files of the folder."""
    if not os.path.isdir(path):
        return [path]
    return sorted(os.path.join(place, name) for place, _, names in os.walk(path)
                  for name in names)


def content_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Contents:
    """Hashes of files, kept with the size and time that the files had."""

    def __init__(self, path):
        self.path, self.known, self.changed = path, {}, False
        if os.path.exists(path):
            with open(path) as file:
                self.known = json.load(file)

    def hash(self, path):
        stat = os.stat(path)
        state = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        if self.known.get(path, [None])[:-1] != state:
            self.known[path] = [*state, content_of(path)]
            self.changed = True
        return self.known[path][-1]

    def save(self):
        if self.changed:
            handle, name = tempfile.mkstemp(dir=os.path.dirname(self.path))
            with open(handle, "w") as file:
                json.dump(self.known, file)
            os.rename(name, self.path)


def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def compiler_files():
    """The programs that g++ and nvcc start, and those two."""
    found = [shutil.which("g++")]
    found += [shutil.which(said_by("g++", f"-print-prog-name={name}").strip())
              for name in ("cc1plus", "as", "ld", "collect2")]
    if shutil.which("nvcc"):
        found.append(shutil.which("nvcc"))
        home = os.path.dirname(os.path.dirname(os.path.realpath(found[-1])))
        found += glob.glob(f"{home}/nvvm/bin/*") + [
            path for name in ("ptxas", "fatbinary", "cudafe++", "nvlink")
            for path in glob.glob(f"{home}/bin/{name}")]
    return filter(None, found)


def toolchain_files():
    """Whatever makes an artifact of settings."""
    compiler = shutil.which("fsdp-compile")
    libraries = re.findall(r"=> (/\S+)", said_by("ldd", compiler))
    runtime = glob.glob(os.path.dirname(os.path.dirname(os.path.realpath(compiler))) + "/lib/*.so*")
    return sorted({os.path.realpath(path) for path in [
        compiler, *libraries, *runtime, *compiler_files(),
        *files_below(f"{SOURCE}/include")] if os.path.isfile(path)})


@functools.lru_cache
def toolchain(root):
    """One hash of all that, and of the CPU that code is made for."""
    contents = Contents(f"{root}/contents.json")
    parts = [(path, contents.hash(path)) for path in toolchain_files()]
    contents.save()
    with open("/proc/cpuinfo") as file:
        cpu = re.findall(r"^(?:model name|flags)\s*:.*", file.read(), re.M)[:2]
    return hashlib.sha256(json.dumps([parts, cpu]).encode()).hexdigest()[:20]


def key_of(command, inputs):
    """What tells one command from another that the same tools run."""
    settings = [word for word in command if re.match(r"--[\w.]+=", word)]
    if len({word.partition("=")[0] for word in settings}) < len(settings):
        settings = []  # the last of one name counts
    others = [word for word in command if word not in settings]
    named = [part for word in command for part in {word, word.partition("=")[2]}]
    files = [(path, content_of(path)) for name in (*named, *inputs) if os.path.exists(name)
             for path in files_below(name)]
    variables = {name: value for name, value in os.environ.items() if VARIABLES.fullmatch(name)}
    return hashlib.sha256(json.dumps([others, sorted(settings), files, sorted(
        variables.items())]).encode()).hexdigest()


#===------------------------------------------------------------------------===#
# Entries
#===------------------------------------------------------------------------===#

def folder_of(root):
    """The entries of these tools; those of others are removed."""
    os.makedirs(root, exist_ok=True)
    name = toolchain(root)
    if not os.path.isdir(f"{root}/{name}"):
        for other in glob.glob(f"{root}/*/"):
            shutil.rmtree(other, ignore_errors=True)
        os.makedirs(f"{root}/{name}", exist_ok=True)
    return f"{root}/{name}"


def fill(entry, make):
    """`make(folder)` says something; both become the entry, at once."""
    partial = tempfile.mkdtemp(prefix="partial-", dir=os.path.dirname(entry))
    try:
        said = make(f"{partial}/made")
        with open(f"{partial}/said", "w") as file:
            file.write(said.replace(f"{partial}/made", "%made"))
        os.rename(partial, entry)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def obtain(command, make, target, inputs=()):
    """What `make(target)` says after it has filled the folder `target`. It does
    so for the first who asks for `command`; others get a copy."""
    root = os.environ.get("FSDP_TEST_CACHE")
    if not root:
        return make(target)
    entry = f"{folder_of(root)}/{key_of(command, inputs)}"
    # Who asks meanwhile waits: compiling it twice would take longer.
    with open(f"{entry}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(entry):
            fill(entry, make)
    shutil.copytree(f"{entry}/made", target, dirs_exist_ok=True)
    with open(f"{entry}/said") as file:
        return file.read().replace("%made", target)


def compile(command, out):
    """An artifact: `command` without its -o."""
    return obtain(command, lambda folder: commands.run(*command, "-o", folder), out)


if __name__ == "__main__":  # COMMAND ... -o FOLDER
    *words, option, folder = sys.argv[1:]
    assert option == "-o", "the folder comes last"
    print(compile(words, folder), end="")
