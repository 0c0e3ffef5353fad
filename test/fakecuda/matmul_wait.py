"""Two first runs of an artifact at once: the second waits for the first's choice.

    matmul_wait.py FILE KNOWN COMMAND...

Takes the place of a run that times matmuls: it holds the folder of FILE until
COMMAND waits for it, and leaves KNOWN there. COMMAND must end well and leave
FILE as it was."""
import fcntl
import os
import shutil
import subprocess
import sys
import time


def is_awaited(folder):
    place = f":{os.stat(folder).st_ino} "
    with open("/proc/locks") as locks:
        return any("-> FLOCK" in line and place in line for line in locks)


def main():
    place, known, *command = sys.argv[1:]
    if os.path.exists(place):
        os.remove(place)
    holder = os.open(os.path.dirname(place), os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    run = subprocess.Popen(command)
    while not is_awaited(os.path.dirname(place)):
        if run.poll() is not None:
            sys.exit(f"the run waits for nobody and ends with status {run.returncode}")
        time.sleep(0.02)
    shutil.copy(known, place)
    os.close(holder)
    if run.wait() != 0:
        sys.exit(f"status {run.returncode}")
    with open(place) as left, open(known) as right:
        if left.read() != right.read():
            sys.exit("the run made a choice of its own")
    print("it takes the other's choice")


if __name__ == "__main__":
    main()
