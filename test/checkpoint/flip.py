"""Changes one bit of a file: flip.py FILE POSITION, from the end if negative."""
import sys

path, position = sys.argv[1], int(sys.argv[2])
with open(path, "rb") as file:
    data = bytearray(file.read())
data[position] ^= 1
with open(path, "wb") as file:
    file.write(data)
