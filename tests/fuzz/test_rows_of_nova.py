"""Half-written rows in databases laid out as Nova's."""

from __future__ import annotations

import pathlib

from tests.fuzz.sampling import tried_out
from tests.fuzz.stores import NOVA
from tests.fuzz.targets import TARGETS
from tests.fuzz.world import a_world


def test_no_row_does_harm(tmp_path: pathlib.Path) -> None:
    (target,) = (each for each in TARGETS if each.options.get("layout") == NOVA)
    with a_world(tmp_path, **target.options) as world:
        tally = tried_out(world, target)
    assert tally.violations == {}
    assert tally.kinds["accepted"] >= 5
