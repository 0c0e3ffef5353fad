"""change_token.py FROM TO: the dump of a rank with a token that no vocabulary
has."""
import struct
import sys

from support import files
from support.tensors import encoded, read_header

header, data = read_header(sys.argv[1])
data = bytearray(data)
struct.pack_into("<i", data, header["tokens"]["data_offsets"][0], -1)
files.write(sys.argv[2], encoded(header, bytes(data)))
