"""Targets whose inputs are made, not changed.

    python -m tests.fuzz.generated NAME INPUTS SEED FILE

``one field`` goes through all changes of one field, in their order; what is named ``by chance`` is
changed at random; hypothesis makes the rest.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from scheduler import concurrency

concurrency.activate(concurrency.THREADING)

from tests.fuzz import fields, targets  # noqa: E402 - after the back end is chosen
from tests.fuzz.strategies import PARTS  # noqa: E402
from tests.fuzz.tally import Tally  # noqa: E402
from tests.fuzz.targets_listed import BY_CHANCE  # noqa: E402
from tests.fuzz.world import World, a_world  # noqa: E402


def change_fields(world: World, tally: Tally, inputs: int) -> None:
    """Change one field after the other, evenly among all changes if there are more."""
    every = max(1, sum(1 for _ in fields.changes(1)) // inputs)
    for message, path in fields.changes(every):
        shown = fields.shown(message, path)
        tally.count(shown, lambda m=message, p=path: fields.try_out(world, m, p))


def make_parts(world: World, tally: Tally, name: str, inputs: int) -> None:
    """Have hypothesis make values for one part of a request."""
    values, change = PARTS[name]
    try_out = targets.with_spec(change)

    @settings(
        max_examples=inputs,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(values)
    def give(value: Any) -> None:
        data = json.dumps(value).encode()
        tally.count(data, lambda: try_out(world, data))

    give()


def main(name: str, inputs: int, seed: int, out: pathlib.Path) -> None:
    """Give the target *name* so many inputs, and write what became of them to *out*."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:  # noqa: SIM117 - the world is in the folder
        with a_world(pathlib.Path(folder), driver="caching_scheduler") as world:
            if name == "one field":
                change_fields(world, tally, inputs)
            elif name.endswith(BY_CHANCE):
                whole = name.removesuffix(BY_CHANCE)
                target = next(each for each in targets.TARGETS if each.name == whole)
                tally = targets.tried_out(world, target, inputs, seed)
            else:
                make_parts(world, tally, name, inputs)
    out.write_text(json.dumps(tally.to_plain()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4]))
