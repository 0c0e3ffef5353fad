"""One case of bad_input.py."""
import dataclasses
import typing


@dataclasses.dataclass
class Case:
    name: str
    command: list
    message: str  # regular expression that stderr matches
    lines: int = 1  # of stderr, at most; more where notes give the place
    environment: dict = dataclasses.field(default_factory=dict)
    disturb: typing.Callable = None  # does harm to the running process
    kept: tuple = ()  # what a failed run must keep
