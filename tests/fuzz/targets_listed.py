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
    Listed(f"bodies{BY_CHANCE}", 390_000, IN_TURN),
    Listed("bodies", 60_000),
    Listed(f"objects{BY_CHANCE}", 431_000, IN_TURN),
    Listed("objects", 30_000),
    Listed("messages", 20_000),
    Listed("explanations", 1_500),
    Listed("older messages", 8_000),
    Listed("what-if", 2_000),
    Listed("queries", 8_000),
    Listed("documents of hosts", 4_000),
    Listed("rows", 1_000),
    Listed("rows of Nova's", 300),
    Listed("configuration files", 2_000),
    Listed("one field", 40_000, IN_TURN),
    Listed("hints", 3_000, IN_TURN),
    Listed("extra specs", 3_000, IN_TURN),
    Listed("image properties", 3_000, IN_TURN),
)
