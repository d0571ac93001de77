"""``recording``: files listed, and decided again."""

import json
import pathlib

import pytest

from scheduler import exit_codes
from tests.unit.recording.test_recording import a_fleet, changed, record

pytestmark = pytest.mark.slow


@pytest.fixture
def segment(config_file, tmp_path):
    """A recorded day."""
    pathlib.Path(config_file).write_text("[database]\nconnection = sqlite:////nowhere/at/all\n")
    (path,) = record(tmp_path, a_fleet())
    return path


def test_files_are_listed_and_decided_again(run, segment):
    status, out, _err = run("recording", "show", str(segment), "-f", "json")
    (row,) = json.loads(out)
    assert (row["decisions"], row["hosts"], row["gaps"]) == (22, 6, 0)
    status, out, _err = run("recording", "check", str(segment))
    assert status == exit_codes.OK
    assert "22 of 22 decisions got their recorded answer, 0 another one" in out
    status, out, _err = run("replay", str(segment), "-f", "json")
    assert json.loads(out)["configurations"]["configured"]["requests"] == 22


@pytest.mark.parametrize("verb", ["merge", "anonymize"])
def test_files_are_written_anew(run, segment, tmp_path, verb):
    target = tmp_path / "new.jsonl.gz"
    status, out, _err = run("recording", verb, str(segment), "-o", str(target))
    assert (status, f"22 decisions are in {target}" in out) == (exit_codes.OK, True)
    status, out, _err = run("recording", "check", str(target))
    assert "22 of 22 decisions got their recorded answer, 0 another one" in out
    for name, complaint in (("new.jsonl.gz", "File exists"), ("new.txt", "ends in .jsonl.gz")):
        status, _out, err = run("recording", verb, str(segment), "-o", str(tmp_path / name))
        assert status == exit_codes.FAILURE
        assert "--output: " in err
        assert complaint in " ".join(err.split())


def test_another_answer_and_a_truncated_file(run, segment):
    other = changed(segment, 1, lambda line: line.update(answer=[]))
    status, out, _err = run("recording", "check", str(other))
    assert status == exit_codes.FAILURE
    assert f"{other}, line 2: " in out
    assert ", recorded refused" in out
    assert "21 of 22 decisions got their recorded answer, 1 another one" in out
    segment.write_bytes(segment.read_bytes()[:-40])
    status, _out, err = run("recording", "check", str(segment))
    assert status == exit_codes.FAILURE
    assert "Compressed file ended" in " ".join(err.split())
    status, out, _err = run("recording", "check", str(segment), "--lenient")
    assert status == exit_codes.OK
    assert "Compressed file ended" in out
