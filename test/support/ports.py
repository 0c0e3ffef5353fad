"""Ports for jobs whose launcher names one."""
import random
import socket

# Neither those that systems give to clients, of which a closed connection holds one
# for a minute, nor those of jobs that have only a name.
RANGE = range(10000, 20000)

# What this process has given away. Nobody else gets it while the process lives.
held = []


def hold(port):
    """A socket at a port that has nobody: ranks can listen there, but no other socket
    that does not want to share can have it."""
    own = socket.socket()
    try:
        own.bind(("127.0.0.1", port))
    except OSError:
        own.close()
        raise
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return own


def free_port():
    """A port for MASTER_PORT. It is free, and so is the one after it, where ranks meet."""
    for port in random.sample(RANGE[::2], len(RANGE[::2])):
        try:
            held.append(hold(port))
            held.append(hold(port + 1))
            return port
        except OSError:
            continue
    raise SystemExit(f"no free port from {RANGE.start} to {RANGE.stop - 1}")
