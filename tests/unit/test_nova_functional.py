"""Which of Nova's functional tests make a run red."""

import json

import pytest

from tests.nova_functional.results import NOVA, OURS, Results, read, text


def write(path, **outcomes):
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {f"nova.tests.functional.{test}": how for test, how in outcomes.items() if how}
    rows = [{"test": test, "outcome": how, "counts": {}} for test, how in found.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("novas", "ours", "alone", "is_listed", "is_red"),
    [
        ("passed", "passed", {}, False, False),
        ("passed", "failed", {NOVA: "passed", OURS: "error"}, True, True),
        ("passed", "error", {NOVA: "passed", OURS: "passed"}, True, False),
        ("passed", "failed", {NOVA: "failed", OURS: "failed"}, True, False),
        ("failed", "failed", {}, False, False),
        ("passed", "skipped", {NOVA: "passed", OURS: "skipped"}, True, True),
        ("passed", None, {NOVA: "passed", OURS: None}, True, True),
        ("passed", "failed", {NOVA: None, OURS: None}, True, True),
    ],
)
def test_what_fails_only_here_is_red(tmp_path, novas, ours, alone, is_listed, is_red):
    found = Results(tmp_path, "r1")
    write(found.path(NOVA, "m"), t=novas)
    write(found.path(OURS, "m"), t=ours)
    for mode, outcome in alone.items():
        for number in range(3):
            write(found.path(mode, f"alone/t.{number}"), t=outcome)
    assert (found.regressions(["m"]) == ["t"]) is is_listed
    assert (found.regressions(["m"]) == ["t"] and found.fails_more_often("t")) is is_red
    assert ("**red**" in text(found, ["m"], {}, found.regressions(["m"]))) is is_red


@pytest.mark.parametrize("outcomes", [("failed", "passed"), ("passed", "failed")])
def test_a_test_passes_if_it_does_in_all_scenarios(tmp_path, outcomes):
    path = Results(tmp_path, "r1").path(OURS, "m")
    write(path, **dict(zip(("t(v1)", "t(v2)"), outcomes, strict=True)))
    assert {name: row["outcome"] for name, row in read(path).items()} == {"t": "failed"}
