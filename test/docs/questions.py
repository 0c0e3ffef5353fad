#!/usr/bin/env python3
"""Follows the paths of docs/questions.md.

    questions.py SOURCE

A question is a section. Its steps `[A](a) → [B](b)` begin at README, each where the one
before ended; page A has a link to what B leads to. The last page, or the section that its
anchor names, has the words that the answer has in inline code.
"""
import os
import re
import sys

from pages import anchors, links, read

PAGE = "docs/questions.md"
STEP = r"^\d+\. \[[^\]]*\]\(([^)]+)\) → \[[^\]]*\]\(([^)]+)\)$"


def resolve(target):
    """The file and the anchor of a link of the page."""
    path, _, anchor = target.partition("#")
    return os.path.normpath(os.path.join(os.path.dirname(PAGE), path)), anchor


def section(text, anchor):
    """The part of a page below the heading of an anchor."""
    if not anchor:
        return text
    parts = re.split(r"^(?=#+ )", text, flags=re.M)
    return "".join(part for part in parts if anchor in anchors(part.split("\n")[0]))


def follow(source, title, body):
    """What is wrong with a question."""
    steps = [tuple(map(resolve, step)) for step in re.findall(STEP, body, re.M)]
    words = re.findall(r"`([^`]+)`", body[body.find("\nAnswer: "):])
    if not steps or not words or "\nAnswer: " not in body:
        return [f"{title}: no steps, or no answer with words"]
    problems, at = [], "README.md"
    for (start, _), (end, anchor) in steps:
        if start != at:
            problems.append(f"{title}: a step begins at {start} and not at {at}")
        targets = {(path, found) for _, path, found in links(start, read(os.path.join(source, start)))}
        if (end, anchor) not in targets:
            problems.append(f"{title}: {start} has no link to {end}{anchor and '#' + anchor}")
        at = end
    text = section(read(os.path.join(source, at)), steps[-1][1][1])
    problems += [f"{title}: {at} does not say {word}" for word in words if word not in text]
    return problems


def main():
    source = sys.argv[1]
    questions = re.split(r"^## ", read(os.path.join(source, PAGE)), flags=re.M)[1:]
    problems = []
    for question in questions:
        title, _, body = question.partition("\n")
        problems += follow(source, title, body)
    for problem in problems:
        print(problem)
    print(f"{len(questions)} questions, {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
