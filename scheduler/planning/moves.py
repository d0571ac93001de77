"""Moves and plans as data."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

#: Client's command for one live migration.
_COMMAND: Final = ("openstack", "server", "migrate", "--live-migration", "--host")


@dataclass(frozen=True, slots=True)
class Move:
    """One server that goes from one host to another; sizes in MB, processors and GB."""

    server: str
    source: str
    target: str
    memory_mb: int
    vcpus: int
    disk_gb: int
    reason: str
    #: Hosts that would have done as well, best first.
    alternates: tuple[str, ...] = ()
    #: Group that it is a member of.
    group: str | None = None
    #: Servers whose hosts decide where it may be.
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stuck:
    server: str
    host: str
    reason: str


@dataclass(slots=True)
class Plan:
    """Moves in the order in which they were decided, and what they lead to."""

    goal: str
    wanted: int
    reached: int = 0
    moves: Sequence[Move] = ()
    stuck: list[Stuck] = field(default_factory=list)
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    #: Hosts that the goal is about: emptied, or with room for a server.
    hosts: Sequence[str] = ()
    #: True when time or moves ended the search.
    is_cut_off: bool = False
    #: Share of the memory in use of each host, the fullest first, before and after.
    memory: dict[str, list[float]] = field(default_factory=dict)

    def waves(self) -> list[list[Move]]:
        """The moves in waves: those of one wave can be made at once, wave after wave."""
        waves: dict[int, list[Move]] = {}
        for number, move in zip(wave_numbers(self.moves), self.moves, strict=True):
            waves.setdefault(number, []).append(move)
        return [waves[number] for number in sorted(waves)]

    def to_dict(self) -> dict[str, Any]:
        """Everything as what JSON can hold; waves are numbered from 1."""
        waves = enumerate(self.waves(), 1)
        moves = [{"wave": n, **asdict(each)} for n, wave in waves for each in wave]
        return {**asdict(self), "moves": moves}

    def shell(self) -> Iterable[str]:
        """Lines for a shell: the client's command of each move, wave after wave."""
        for number, wave in enumerate(self.waves(), 1):
            yield f"# Wave {number}: wait until all of it are done"
            for each in wave:
                yield shlex.join([*_COMMAND, each.target, "--wait", each.server]) + " &"
            yield "wait"


def wave_numbers(moves: Sequence[Move]) -> list[int]:
    """Per move its wave, from 0 on: later than every move before it that it depends on.

    It depends on those that leave its target, whose room it may need, and on those of the same
    server or group or of servers that it names, whose hosts decide where it may be.
    """
    left: dict[str, int] = {}
    held: dict[str, int] = {}
    numbers = []
    for move in moves:
        ties = [each for each in (move.server, move.group, *move.named) if each]
        number = max(left.get(move.target, -1), *(held.get(tie, -1) for tie in ties)) + 1
        left[move.source] = max(left.get(move.source, -1), number)
        held.update(dict.fromkeys(ties, number))
        numbers.append(number)
    return numbers
