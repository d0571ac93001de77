"""``evaluate``: lines, differences, summary and status; without broker and database."""

import functools
import gzip
import json
import pathlib
import subprocess
import sys

import pytest

from scheduler import exit_codes
from tests.unit.evaluation.builders import a_case, a_fleet

pytestmark = pytest.mark.slow

EXPECT = {
    "filters": [{"name": "RamFilter", "passed": [["h1", "h1"]]}],
    "passed": [["h1", "h1"]],
    "limits": {"h1/h1": {"memory_mb": 8192.0}},
    "weights": {"h1/h1": 0.0},
    "selected": [["h1", "h1"]],
}
#: A database that no command could use.
CONFIG = "[database]\nconnection = sqlite:////nowhere/at/all\n"


@pytest.fixture
def files(tmp_path):
    """One suite whose case agrees, and one whose case does not."""
    paths = []
    for name, expect in (("good/d1", EXPECT), ("bad/d1", {**EXPECT, "passed": [["h2", "h2"]]})):
        case = a_case(a_fleet(4096), name=name, expect=expect)
        path = tmp_path / f"{case['suite']}.jsonl.gz"
        path.write_bytes(gzip.compress(json.dumps(case).encode()))
        paths.append(str(path))
    return paths


@pytest.fixture
def evaluate(config_file, run):
    """Run the command; give its status and what it prints."""
    pathlib.Path(config_file).write_text(CONFIG)
    return functools.partial(run, "evaluate")


def test_a_line_per_case(evaluate, files):
    status, out, err = evaluate(*files)
    lines = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (exit_codes.OK, "")
    assert [line.pop("name") for line in lines] == ["good/d1", "bad/d1"]
    state = {"free_ram_mb": 3072, "free_disk_mb": 101376, "vcpus_used": 1}
    counters = {**state, "num_instances": 1, "num_io_ops": 1}
    assert lines == [{**EXPECT, "state_after": {"h1/h1": counters}}] * 2


def test_check_tells_every_difference_and_fails(evaluate, files):
    status, out, _err = evaluate("--check", *files)
    assert status == exit_codes.FAILURE
    assert "good/d1" not in out
    assert "bad/d1\n    passed: 1 hosts, expected 1: +h1 -h2\n" in out
    for row in ("good 1 1 0 0", "bad 1 0 0 1", "total 2 1 0 1"):
        assert row.split() in cells(out)


def test_a_listed_difference_is_no_failure(evaluate, files, monkeypatch):
    monkeypatch.setattr("scheduler.evaluation.outcome.REASONS", {"bad/d1": "because"})
    status, out, _err = evaluate("--check", *files)
    assert status == exit_codes.OK
    assert "bad/d1 (listed difference: because)" in out
    assert ["bad", "1", "0", "1", "0"] in cells(out)


def cells(out):
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines()]


def test_standard_input_and_nothing_of_the_message_bus(files):
    program = (
        "import sys; from scheduler.cli import app; status = app.main(sys.argv[1:]);"
        "sys.exit(9 if 'oslo_messaging' in sys.modules else status)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, "evaluate", "-"],
        input=gzip.decompress(pathlib.Path(files[0]).read_bytes()),
        capture_output=True,
        check=False,
    )
    assert ran.returncode == exit_codes.OK, ran.stderr
    assert json.loads(ran.stdout)["name"] == "good/d1"
