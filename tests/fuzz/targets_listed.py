"""All targets by name: who tries them out, and with how many inputs.

Nothing of the scheduler is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass

BY_COVERAGE, IN_TURN = "tests.fuzz.one", "tests.fuzz.generated"


@dataclass(frozen=True)
class Listed:
    """A target of ``make fuzz``; *module* is the program that runs it."""

    name: str
    inputs: int
    module: str = BY_COVERAGE


LISTED = (
    Listed("bodies", 250_000),
    Listed("messages", 100_000),
    Listed("older messages", 50_000),
    Listed("what-if", 15_000),
    Listed("objects", 300_000),
    Listed("queries", 50_000),
    Listed("documents of hosts", 40_000),
    Listed("rows", 10_000),
    Listed("rows of Nova's", 5_000),
    Listed("configuration files", 8_000),
    Listed("one field", 165_000, IN_TURN),
    Listed("hints", 20_000, IN_TURN),
    Listed("extra specs", 20_000, IN_TURN),
    Listed("image properties", 20_000, IN_TURN),
)
