"""The JSON options file: read anew when it is newer, looked at once in five minutes."""

import json

import pytest

from scheduler.drivers.filter_scheduler import JsonOptions
from scheduler.filters.base import BaseHostFilter
from tests.builders import a_request
from tests.unit.drivers.scheduling import a_clock, a_driver, select
from tests.unit.evaluation.builders import a_fleet


@pytest.fixture
def clock():
    return a_clock()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "scheduler.json"
    write(path, {"a": 1})
    return path


def write(path, data):
    path.write_text(data if isinstance(data, str) else json.dumps(data))


@pytest.mark.parametrize(
    ("data", "after_seconds", "expected"),
    [
        ({"b": 2}, 300, {"b": 2}),
        ({"b": 2}, 299, {"a": 1}),  # not looked at yet
        ({"b": 2}, -1, {"b": 2}),  # the clock was set back
        ("{", 300, {}),
        ("\udcff", 300, {}),
        ("[" * 100_000, 300, {}),
        ("null", 300, {}),
        ("[]", 300, {}),
        ("0", 300, {}),
        ("[1]", 300, [1]),
    ],
)
def test_edits(path, clock, data, after_seconds, expected):
    options = JsonOptions(str(path), clock)
    assert JsonOptions("", clock).current() == {}
    assert options.known == {"a": 1}  # what-if, plan and replay do not look again
    assert options.current() == {"a": 1}
    if data == "\udcff":
        path.write_bytes(b"\xff")
    else:
        write(path, data)
    clock.now += after_seconds
    assert options.current() == expected


def test_a_missing_file_leaves_what_was_read_and_is_logged_once_per_check(path, clock, caplog):
    options = JsonOptions(str(path), clock)
    options.current()
    path.unlink()
    clock.now += 300
    for _request in range(3):
        assert options.current() == {"a": 1}
    told = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert told == [f"Could not stat scheduler options file {path}"]


def test_a_file_that_appears_is_seen_by_the_next_check(tmp_path, clock):
    path = tmp_path / "later.json"
    options = JsonOptions(str(path), clock)
    assert options.current() == {}
    write(path, {"a": 1})
    clock.now += 299
    assert options.current() == {}
    clock.now += 1
    assert options.current() == {"a": 1}


class NamedHostFilter(BaseHostFilter):
    """Third-party code: passes the host that the file names, and writes where it must not."""

    def host_passes(self, host_state, spec_obj):
        wanted = spec_obj.config_options["host"]
        wanted.append(host_state.host)
        return wanted[0] == host_state.host


def test_filters_find_the_options_in_the_request(path, clock):
    write(path, {"host": ["h2"]})
    driver = a_driver(
        a_fleet(4096, 2048),
        clock=clock,
        options={"scheduler_json_config_location": str(path)},
        available_filters=[f"{__name__}.NamedHostFilter"],
        enabled_filters=["NamedHostFilter"],
    )
    request = a_request()
    assert [select(driver, request) for _again in range(2)] == [["h2"], ["h2"]]
    assert dict(request.config_options) == {}
    assert "config_options" not in request.obj_to_primitive()["nova_object.data"]
