"""The command line of ``what-if``: the request, the profiles, and how the answer is shown."""

import json
import re
from types import SimpleNamespace

import pytest

from scheduler import errors
from scheduler.cli import what_if
from scheduler.cli.program import Program
from scheduler.cli.what_if import WhatIf, profiles_of, show
from scheduler.db import flavors
from scheduler.explain.rendering import Paper
from tests.builders import a_conf, a_request
from tests.unit.objects import wire_samples

TOLD = {
    "outcome": "selected",
    "chosen": [{"host": "cmp1", "node": "n1"}],
    "alternates": [[{"host": "cmp2", "node": "n2"}]],
    "fleet": 3,
    "considered": 3,
    "passed": 2,
    "never_evaluated": {},
    "filters": [{"name": "RamFilter", "start": 3, "end": 2, "removed": {"ram.full": 1}}],
    "top": [{"host": "cmp1", "node": "n1", "total": 1.5, "weighers": []}],
    "cause": "",
}
REFUSED = {
    **TOLD,
    "outcome": "no_host_fits",
    "chosen": [],
    "cause": "RamFilter left none.",
    "top": [],
}


def request_of(database, *words):
    program = Program(a_conf())
    parsed = WhatIf(program, None).get_parser("what-if").parse_args(list(words))
    return what_if.request_of(parsed, a_conf(), SimpleNamespace(api=database))


def test_options_make_a_request(database):
    with database.write() as connection:
        pinned = a_request(
            flavor={
                "name": "p",
                "memory_mb": 4096,
                "vcpus": 2,
                "extra_specs": {"hw:numa_nodes": "2"},
            }
        ).flavor
        flavors.create(connection, pinned)
    words = "--flavor p --az az1 --project red --count 3"
    spec = request_of(database, *words.split())
    assert (spec.memory_mb, spec.project_id, spec.num_instances) == (4096, "red", 3)
    assert (spec.availability_zone, len(spec.numa_topology.cells)) == ("az1", 2)
    assert spec.instance_uuid


def test_a_request_of_the_bus_is_read_from_a_file(database, tmp_path):
    message = wire_samples.load("select_destinations-simple.request")
    path = tmp_path / "request.json"
    path.write_text(json.dumps(message["args"]["spec_obj"]))
    assert request_of(database, "--request", str(path)).flavor.flavorid
    path.write_text(json.dumps(message))
    with pytest.raises(errors.InvalidRequest, match="no RequestSpec in the form of the bus"):
        request_of(database, "--request", str(path))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "REQUEST_ID: give it, or else options of a request"),
        (["req-1", "--flavor", "x"], "REQUEST_ID: give it, or else options of a request"),
        (["--request", "x", "--az", "z"], "--request: only --count goes with it"),
        (["--az", "z"], "--flavor: missing, without --request"),
        (["--flavor", "no-such"], "no-such"),
        (["--request", "/no/such"], "--request /no/such: .*No such file"),
        (["--flavor", "m1.tiny", "--add-hosts", "2"], "--add-hosts 2: 2: No such file"),
        (["--request", __file__], "--request .*: Extra data: line 1"),
        (["--flavor", "m1.tiny", "--add-hosts", "like:x"], "--add-hosts like:x: not of the form"),
        (["--flavor", "m1.tiny", "--add-hosts", "like:x:²"], "like:x:²: not of the form"),
        (["--flavor", "m1.tiny", "--add-hosts", f"like:x:{'9' * 5000}"], ": not of the form"),
    ],
)
@pytest.mark.usefixtures("database")
def test_mistakes_are_one_line(refused, words, text):
    assert re.search(text, refused("what-if", *words))


def test_profiles_come_from_files_and_from_hosts(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("- {vcpus: 4, count: 2}\n- like: cmp1\n")
    assert profiles_of(str(path)) == [{"vcpus": 4, "count": 2}, {"like": "cmp1"}]
    assert profiles_of("like:a:b:3") == [{"like": "a:b", "count": 3}]
    for text in ("a: [", "- 1\n", "word"):
        path.write_text(text)
        with pytest.raises(errors.InvalidRequest, match=r"--add-hosts .*p\.yaml"):
            profiles_of(str(path))


@pytest.mark.parametrize(
    ("before", "after", "first_line"),
    [
        (TOLD, TOLD, "No change: cmp1"),
        (REFUSED, TOLD, "Now: RamFilter left none. Then: cmp1."),
        (TOLD, REFUSED, "Now: cmp1. Then: RamFilter left none."),
        (TOLD, {**TOLD, "filters": []}, "The same hosts, found in another way: cmp1"),
    ],
)
def test_the_first_line_says_what_changes(before, after, first_line):
    console = Paper(width=160)
    answer = {
        "worker": 1, "host": "ctl", "state_age_seconds": 0.5, "before": before, "after": after,
        "notes": ["a note"],
    }  # fmt: skip
    with console.capture() as captured:
        show(console, answer)
    text = captured.get()
    assert text.splitlines()[0] == first_line
    assert all(part in text for part in ("worker 1 of ctl", "a note", "RamFilter"))
