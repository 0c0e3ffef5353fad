"""A chess engine that speaks UCI: Debian's stockfish."""
import shutil
import subprocess
import sys


class Engine:
    """Legal moves and good ones, in the notation of UCI ("e2e4", "e7e8q")."""

    def __init__(self):
        path = shutil.which("stockfish") or shutil.which("/usr/games/stockfish")
        if not path:
            sys.exit("stockfish is missing: sudo apt-get install stockfish")
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)
        self._send("uci", "setoption name Threads value 1", "setoption name Hash value 16")

    def _send(self, *lines):
        self.process.stdin.write("".join(line + "\n" for line in lines))
        self.process.stdin.flush()

    def _read(self, last):
        """The lines up to one that begins with `last`."""
        lines = []
        for line in self.process.stdout:
            lines.append(line.strip())
            if line.startswith(last):
                return lines
        sys.exit("stockfish ended")

    def legal(self, moves):
        """The legal moves after `moves`; none if the game is over."""
        self._send("position startpos moves " + " ".join(moves), "go perft 1")
        counts = [line.split(": ") for line in self._read("Nodes searched")]
        return sorted(parts[0] for parts in counts if len(parts) == 2 and parts[1] == "1")

    def best(self, moves, depth=1):
        self._send("ucinewgame", "position startpos moves " + " ".join(moves), f"go depth {depth}")
        return self._read("bestmove")[-1].split()[1]
