"""Starts a command, crashes it once it can report that, and prints what it says.

usage: crash.py COMMAND...
"""
import os
import signal
import subprocess
import sys
import time

# A stack without names of functions: finding those takes long.
process = subprocess.Popen(
    sys.argv[1:], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    env=os.environ | {"LLVM_DISABLE_SYMBOLIZATION": "1"})
bit = 1 << (signal.SIGSEGV - 1)


def catches_crashes():
    with open(f"/proc/{process.pid}/status") as status:
        caught = next(line.split()[1] for line in status if line.startswith("SigCgt"))
    return int(caught, 16) & bit


while not catches_crashes():
    assert process.poll() is None, "ended by itself"
    time.sleep(0.01)
process.send_signal(signal.SIGSEGV)
print(process.communicate()[1])
