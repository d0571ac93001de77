"""A worker's state in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduler import errors
from scheduler.introspection.state import Subject, state_summary
from tests.unit.introspection.subjects import a_world
from tests.world.fleet import a_spec


def test_numbers_follow_what_the_worker_knows_and_promises(tmp_path: Path) -> None:
    names = ("hosts", "candidates", "up", "disabled", "aggregates", "open_picks")
    with a_world(tmp_path) as world:
        before = state_summary(world.subject)
        world.subject.manager.select_destinations(
            None, spec_obj=a_spec("u1"), instance_uuids=["u1"]
        )
        after = state_summary(world.subject)
    assert [before[name] for name in names] == [3, 3, 3, 0, 1, 0]
    assert [after[name] for name in names] == [3, 3, 3, 0, 1, 1]
    assert after["instances"] == before["instances"] + 1
    assert 0 <= after["state_age_seconds"] < 60
    assert after["driver"] == "FilterScheduler"


def test_a_host_manager_of_ones_own_is_named(tmp_path: Path) -> None:
    class Own:
        """Not ours."""

    with a_world(tmp_path) as world:
        manager: Any = world.subject.manager
        manager.driver.host_manager = Own()
        with pytest.raises(errors.InvalidRequest, match="Own keeps its state"):
            state_summary(Subject(world.subject.conf, manager, 1, 1))
