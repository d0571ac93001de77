"""All targets by name: who tries them out, and with how many inputs.

Nothing of the scheduler is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass

BY_COVERAGE, IN_TURN = "tests.fuzz.one", "tests.fuzz.generated"
BY_CHANCE = " by chance"
"""At the end of the name: changed without looking at what ways they take, which costs a quarter."""


@dataclass(frozen=True)
class Listed:
    """A target of ``make fuzz``; *module* is the program that runs it."""

    name: str
    inputs: int
    module: str = BY_COVERAGE


LISTED = (
    Listed(f"bodies{BY_CHANCE}", 330_000, IN_TURN),
    Listed("bodies", 60_000),
    Listed(f"objects{BY_CHANCE}", 420_000, IN_TURN),
    Listed("objects", 40_000),
    Listed("messages", 30_000),
    Listed("older messages", 15_000),
    Listed("what-if", 4_000),
    Listed("queries", 12_000),
    Listed("documents of hosts", 6_000),
    Listed("rows", 2_000),
    Listed("rows of Nova's", 600),
    Listed("configuration files", 3_000),
    Listed("one field", 61_000, IN_TURN),
    Listed("hints", 6_000, IN_TURN),
    Listed("extra specs", 6_000, IN_TURN),
    Listed("image properties", 6_000, IN_TURN),
)
