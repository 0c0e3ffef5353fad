"""Writes short games of a chess engine: one JSON object with "text" per line.

usage: games.py COUNT SEED OUT.jsonl

Half of the moves are the engine's, half are drawn among the legal ones, so that games
differ. The same count and seed give the same games with one version of the engine.
"""
import json
import os
import random
import sys

from engine import Engine

PLIES = 12


def game(engine, draw):
    moves = []
    while len(moves) < PLIES:
        legal = engine.legal(moves)
        if not legal:
            break
        moves.append(draw.choice(legal) if draw.random() < 0.5 else engine.best(moves))
    return " ".join(moves)


def main():
    count, seed, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    engine, draw = Engine(), random.Random(seed)
    with open(path + ".partial", "w") as file:
        for number in range(1, count + 1):
            file.write(json.dumps({"text": game(engine, draw)}) + "\n")
            if number % 500 == 0:
                print(f"games: {number} of {count}", flush=True)
    os.rename(path + ".partial", path)


main()
