"""A service row as a mapping: read-only, equal to the row, without a dictionary of its own."""

from __future__ import annotations

import pytest

from scheduler.hosts.service_record import ServiceRecord

ROW = {"id": 1, "host": "compute-1", "binary": "nova-compute", "topic": None, "disabled": False}


def test_it_reads_like_the_row():
    record = ServiceRecord(ROW)

    assert record == ROW
    assert {**record, "disabled": True} == {**ROW, "disabled": True}
    assert list(record) == list(ROW)
    assert record.get("no such column") is None
    assert "compute-1" in repr(record)


def test_rows_of_different_layouts_keep_their_names():
    short = {"host": "compute-2", "id": 2}

    assert ServiceRecord(ROW) == ROW
    assert ServiceRecord(short) == short


def test_it_cannot_be_changed():
    with pytest.raises(TypeError):
        ServiceRecord(ROW)["disabled"] = True


def test_records_share_their_names_and_the_texts_that_repeat():
    one, other = (ServiceRecord({**ROW, "binary": "".join(["nova-", end])}) for end in ("x", "x"))

    assert one._position is other._position
    assert one["binary"] is other["binary"]
