"""Reading cases: forms of files, fleets by reference, and what is not a case."""

import gzip
import io
import json
import sys

import pytest

from scheduler import errors
from scheduler.evaluation.cases import read_cases

FLEET = {"compute_nodes": [], "services": [], "aggregates": [], "instances": []}
CASE = {"name": "some/d1", "semantics": "all", "now": "2026-01-01T00:00:00Z"}
LINES = [{"fleet_id": "f", "fleet": FLEET}, {**CASE, "fleet_ref": "f"}, {**CASE, "fleet": FLEET}]
CONTENT = "\n".join(map(json.dumps, LINES)).encode() + b"\n\n"


@pytest.mark.parametrize(("wrap", "name"), [(bytes, "cases"), (gzip.compress, "cases.gz")])
def test_files_and_standard_input(tmp_path, monkeypatch, wrap, name):
    path = tmp_path / name
    path.write_bytes(wrap(CONTENT))
    cases = [{**line, "suite": "some", "fleet": FLEET} for line in LINES[1:]]
    monkeypatch.setattr(sys, "stdin", io.StringIO(CONTENT.decode()))
    assert list(read_cases([str(path), "-"])) == cases * 2


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"{}\n", "line 1: not a case, it has no name, semantics, now, a fleet"),
        (json.dumps(CASE).encode(), "it has no a fleet"),
        (json.dumps({**CASE, "fleet_ref": "unknown"}).encode(), "it has no a fleet"),
        (b'{"fleet_id": "f"}\n' + CONTENT.split(b"\n")[1], "line 2: not a case, it has no a fleet"),
        (b"\n{nonsense\n", "line 2: not JSON"),
        (b"[]\n", "line 1: not an object"),
        (json.dumps({**CASE, "semantics": "old", "fleet": FLEET}).encode(), "semantics 'old' is"),
        (b"\xff\xfe\n", "utf-8"),
        (gzip.compress(CONTENT, mtime=0)[:-9], "end-of-stream"),
        (gzip.compress(CONTENT, mtime=0)[:10] + b"\x07" * 20, "invalid block type"),
    ],
    ids=str,
)
def test_what_is_not_a_case_is_named(tmp_path, content, part):
    path = tmp_path / ("cases.gz" if content.startswith(b"\x1f") else "cases")
    path.write_bytes(content)
    with pytest.raises(errors.BadCase) as caught:
        list(read_cases([str(path)]))
    assert str(path) in str(caught.value)
    assert part in str(caught.value)
