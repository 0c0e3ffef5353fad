"""change_token.py FROM TO: the dump of a rank with a token that no vocabulary
has."""
import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    data = bytearray(file.read())
size = struct.unpack_from("<Q", data)[0]
header = json.loads(data[8:8 + size])
struct.pack_into("<i", data, 8 + size + header["tokens"]["data_offsets"][0], -1)
with open(sys.argv[2], "wb") as file:
    file.write(data)
