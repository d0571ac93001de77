"""``recording``: files listed, decided again and written anew, as a person sees it."""

import contextlib
import gzip
import json
import os
import pathlib
import subprocess

import pytest

from scheduler import exit_codes
from tests.unit.recording.test_recording import a_fleet, changed, record
from tests.world import process
from tests.world.terminal import MANAGE

pytestmark = pytest.mark.slow


@pytest.fixture
def segment(config_file, tmp_path):
    pathlib.Path(config_file).write_text("[database]\nconnection = sqlite:////nowhere/at/all\n")
    (path,) = record(tmp_path, a_fleet())
    return path


def test_files_are_listed_and_decided_again(run, segment):
    status, out, _err = run("recording", "show", str(segment.parent), "-f", "json")
    (row,) = json.loads(out)
    assert (row["decisions"], row["hosts"], row["gaps"]) == (22, 6, 0)
    status, out, _err = run("recording", "check", str(segment.parent))
    assert status == exit_codes.OK
    assert "22 of 22 decisions got their recorded answer, 0 another one" in out
    status, out, _err = run("replay", str(segment.parent), "-f", "json")
    assert json.loads(out)["configurations"]["configured"]["requests"] == 22


def test_a_file_without_decisions_has_neither_begin_nor_end(run, segment):
    segment.write_bytes(gzip.compress(gzip.decompress(segment.read_bytes()).split(b"\n")[0]))
    status, out, _err = run("recording", "show", str(segment))
    assert (status, "None" in out, out.count("| - ")) == (exit_codes.OK, False, 2)
    (row,) = json.loads(run("recording", "show", str(segment), "-f", "json")[1])
    assert (row["begin"], row["end"], row["decisions"]) == (None, None, 0)


def test_flavors_without_a_name_are_told_apart_by_size(run, segment):
    def unnamed(line):
        line["spec"]["nova_object.data"]["flavor"]["nova_object.data"]["name"] = None

    for number in (1, 3, 4):
        segment = changed(segment, number, unnamed)
    status, out, _err = run("replay", str(segment), "-f", "json")
    assert status == exit_codes.OK
    flavors = json.loads(out)["configurations"]["configured"]["failure_rate_by_flavor"]
    assert {name: each["requests"] for name, each in flavors.items() if "/" in name} == {
        "1/1/1": 1,
        "1/2/1": 1,
        "1/3/1": 1,
    }
    fleet = ("--fleet", "6 × 1 cores/1 GiB/100 GiB", "--lenient")
    status, out, _err = run("replay", str(segment), *fleet)
    assert status == exit_codes.OK
    assert "flavor 1/3/1: No host fits: RamFilter" in out


@pytest.mark.parametrize("verb", ["merge", "anonymize"])
def test_files_are_written_anew(run, segment, tmp_path, verb):
    target = tmp_path / "new.jsonl.gz"
    status, out, _err = run("recording", verb, str(segment), "-o", str(target))
    assert (status, f"22 decisions are in {target}" in out) == (exit_codes.OK, True)
    status, out, _err = run("recording", "check", str(target))
    assert "22 of 22 decisions got their recorded answer, 0 another one" in out
    for name in ("new.jsonl.gz", "new.txt", "none/new.jsonl.gz"):
        status, _out, err = run("recording", verb, "/no/recording", "-o", str(tmp_path / name))
        assert (status, f"--output: '{tmp_path / name}'" in err) == (exit_codes.USAGE, True)


def test_another_answer(run, segment):
    other = changed(segment, 1, lambda line: line.update(answer=[]))
    status, out, _err = run("recording", "check", str(other))
    assert status == exit_codes.FAILURE
    assert f"{other}, line 2: " in out
    assert ", recorded refused" in out
    assert "21 of 22 decisions got their recorded answer, 1 another one" in out


def on_a_terminal(*words):
    """The program's standard error, if that is a terminal."""
    ours, its = os.openpty()
    command, environment = [process.program(MANAGE), *words], {**os.environ, "TERM": "xterm"}
    seen = b""
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=its) as ran:
        os.close(its)
        with contextlib.suppress(OSError):  # it has ended
            while said := os.read(ours, 4096):
                seen += said
    os.close(ours)
    assert ran.returncode == exit_codes.OK
    return seen.decode()


@pytest.mark.parametrize(
    ("command", "bars", "ends"),
    [
        ("recording show", ["Reading"], 1),
        ("recording check", ["Deciding"], 1),
        ("recording merge -o a.jsonl.gz", ["Merging"], 0),
        ("recording anonymize -o a.jsonl.gz", ["Reading names", "Replacing names"], 1),
        ("replay", ["Replaying"], 1),
    ],
)
def test_a_bar_moves_on_a_terminal_only(
    run, segment, config_file, monkeypatch, command, bars, ends
):
    monkeypatch.chdir(segment.parent)
    words = [*command.split(), str(segment)]
    seen = on_a_terminal("--config-file", config_file, *words)
    assert [name for name in bars if f"{name} " in seen] == bars
    assert seen.count("100%") >= ends
    segment.with_name("a.jsonl.gz").unlink(missing_ok=True)
    status, out, err = run(*words, "-f", "json")
    assert (status, [name for name in (*bars, "%") if name in err]) == (exit_codes.OK, [])
    assert json.loads(out)


@pytest.mark.parametrize(
    ("change", "said", "decisions"),
    [
        ((0, lambda line: line.update(format="x")), "line 1: not a recording", 0),
        ((0, lambda line: line.update(version=2)), "line 1: version 2 is newer than 1", 0),
        ((6, lambda line: line.update(now=5.0)), "line 7: the clock went back by ", 5),
        ((6, lambda line: line.pop("answer")), "line 7: answer is missing", 5),
        (
            (6, lambda line: line.update(now=1e30, rows=7, uuids=7)),
            "line 7: not a line of a recording: ",
            5,
        ),
        (None, "line 23: Compressed file ended before the end", 21),
    ],
    ids=["other", "newer", "back", "shortened", "malformed", "truncated"],
)
@pytest.mark.parametrize("verb", ["show", "check", "merge", "anonymize", "replay"])
def test_bad_files_are_named_or_used_as_far_as_they_go(run, segment, verb, change, said, decisions):
    path = changed(segment, *change) if change else segment
    if change is None:
        path.write_bytes(path.read_bytes()[:-40])
    words = ["replay"] if verb == "replay" else ["recording", verb]
    words += [str(path), "-f", "json"]
    target = path.with_name("new.jsonl.gz")
    if verb in ("merge", "anonymize"):
        words += ["-o", str(target)]
    status, out, err = run(*words)
    assert (status, out, err.count("\n")) == (exit_codes.FAILURE, "", 1)
    assert f"error: {path}, {said}" in err
    assert not target.exists()
    status, out, err = run(*words, "--lenient")
    assert f"{path}, {said}" in out + err
    is_empty = (verb, decisions) == ("replay", 0)
    assert status == (exit_codes.FAILURE if is_empty else exit_codes.OK)
    assert ("it has no decisions" if is_empty else f": {decisions},") in out + err
