"""Prints the C++ of a step program without what depends on where it came from:
comments, the manifest, the names of buffers in functions (numbered in order)
and the breaks of lines."""
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
text = re.sub(r'R"json\(.*?\)json"', "MANIFEST", text, flags=re.S)
text = re.sub(r"//[^\n]*", "", text)
for function in re.split(r"(?<=\n}\n)", text):
    for number, name in enumerate(dict.fromkeys(
            re.findall(r"const Ptr (\w+) =", function))):
        function = re.sub(rf"\b{name}\b", f"buffer{number}", function)
    print("\n".join(re.sub(r"\s+", " ", function).replace("; ", ";\n").splitlines()))
