"""(row of an instance) -> what is known of it on its host."""

from __future__ import annotations

import datetime

from scheduler.hosts.reservations import TrackedInstance
from scheduler.hosts.updates import tracked
from tests.builders import an_instance_row

OWN = {
    "node": "n1",
    "project_id": "p1",
    "user_id": "joe",
    "instance_type_id": 3,
    "vm_state": "building",
    "task_state": "spawning",
}


def test_all_of_the_row_is_known():
    row = an_instance_row("u1", "h1", updated_at=90, **OWN)
    assert tracked(row) == TrackedInstance("u1", "h1", **OWN, updated_at=90.0)


def test_a_row_that_was_never_changed_is_as_old_as_the_instance():
    row = an_instance_row("u1", "h1", **OWN)
    row.updated_at, row.created_at = None, datetime.datetime(1970, 1, 1, 0, 1)
    assert tracked(row).updated_at == 60.0
