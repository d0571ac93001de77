"""Workloads: files of arrivals, the packed Azure trace, and lines that cannot be used."""

import gzip
import math

import pytest

from scheduler import errors
from scheduler.recording.segments import Segment
from scheduler.replay.azure import read_azure
from scheduler.replay.workload import read_csv

HEADER = "arrival,lifetime,flavor,count,group,zone\n"


def a_file(folder, text):
    path = folder / "day.csv"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return path


def test_rows_become_arrivals(tmp_path):
    text = HEADER + "0,60,4/16,2,affinity:a,z1\n5.5,,8/1.75/20,,,\n"
    found = read_csv(a_file(tmp_path, text), errors.Faults())
    first, second = found.arrivals
    assert (first.at, first.lifetimes, first.group, first.zone) == (0, (60, 60), "affinity:a", "z1")
    assert (first.flavor.vcpus, first.flavor.memory_mb, first.flavor.root_gb) == (4, 16384, 0)
    assert (second.at, second.lifetimes) == (5.5, (math.inf,))
    assert (second.flavor.memory_mb, second.flavor.root_gb) == (1792, 20)
    assert second.request().flavor is second.flavor


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("x,,4/16", "arrival 'x' is not a number of seconds"),
        ("-1,,4/16", "arrival '-1' is not a number of seconds"),
        ("inf,,4/16", "arrival 'inf' is not a number of seconds"),
        ("9,-5,4/16", "lifetime '-5' is not a number of seconds"),
        ("9,5,99999999999/16", "flavor '99999999999/16' is larger than a flavor may be"),
        (f"9,5,1/{'9' * 400}", "flavor '1/999"),
        ("9,5,4/16,0", "count '0' is not a number from 1 to"),
        (f"9,5,4/16,{'9' * 5000}", "count '999"),
        (f"9,5,{'9' * 5000}/16", "flavor '999"),
        ("9,5,4/16,1,,\udcfc", "it is not UTF-8"),
        ("9,5,4/16,1.5", "count '1.5' is not a number from 1 to"),
        ("9,5,4/16,1,together:a", "group 'together:a' is not POLICY:NAME"),
        ("9,5,4/16,1,,,x", "'x' is in no column"),
        ("1,5,4/16", "the clock went back: arrival 1 after 5"),
    ],
)
def test_a_bad_row_is_named_or_left_out(tmp_path, row, complaint):
    path = a_file(tmp_path, f"{HEADER}5,,4/16\n{row}\n10,,4/16\n")
    with pytest.raises(errors.UnusableInput) as caught:
        read_csv(path, errors.Faults())
    assert f"{path}, line 3: {complaint}" in str(caught.value)
    lenient = read_csv(path, errors.Faults(lenient=True))
    assert [each.at for each in lenient.arrivals] == [5, 10]
    assert len(lenient.notes) == 1


def test_a_file_without_columns_or_rows(tmp_path):
    wrong = "line 1: no column lifetime, no column flavor, unknown column 'cuont'; columns are"
    with pytest.raises(errors.UnusableInput, match=wrong):
        read_csv(a_file(tmp_path, "arrival,cuont\n1,1\n"), errors.Faults())
    with pytest.raises(errors.UnusableInput, match="line 2: field larger than"):
        read_csv(a_file(tmp_path, f"{HEADER}1,1,{'x' * 140_000}\n"), errors.Faults())
    with pytest.raises(errors.InvalidRequest, match="no arrivals"):
        read_csv(a_file(tmp_path, HEADER), errors.Faults())


@pytest.mark.parametrize(
    "read",
    [
        lambda path: read_csv(path, errors.Faults()),
        lambda path: next(iter(Segment(path))),
        lambda path: read_azure(path.parent, 1, errors.Faults()),
    ],
    ids=["csv", "recording", "trace"],
)
def test_a_missing_file_is_named_once_and_without_a_line(tmp_path, read):
    path = tmp_path / "flav_map.txt"
    with pytest.raises(errors.UnusableInput) as caught:
        read(path)
    assert str(caught.value) == f"{path}: No such file or directory"


def test_parts_of_a_workload(tmp_path):
    text = HEADER + "".join(f"{at},,4/16\n" for at in (100, 200, 300))
    workload = read_csv(a_file(tmp_path, text), errors.Faults())
    assert [each.at for each in workload.between(100, 201).arrivals] == [200, 300]
    twice = [each.at for each in workload.inflated(2, 0.5).arrivals]
    assert twice == [100, 100, 200, 200, 300, 300]
    assert len(workload.inflated(1.34, 0.5).arrivals) == 4


# --- the Azure trace -----------------------------------------------------------------------------

PARTS = {
    "v1.train.txt.gz": "300 b,|,a,b,b,|,\n",
    "v1.dev.txt.gz": "1800000 a,|,b,|,\n",
    "v1.dev.c2100000.txt.gz": "1800000 U1,|,U2,|,\n",
    "v1.test.txt.gz": "2100000 a,b,|,\n",
    "v1.test.c2591400.txt.gz": "2100000 C2,U0,|,\n",
}


def a_trace(folder, **changed):
    (folder / "flav_map.txt").write_text("1,0.75 a\n16,112 b\n")
    (folder / "interval_map.txt").write_text("0 0\n300 1\n600 2\n900 2\n")
    for name, text in {**PARTS, **changed}.items():
        (folder / name).write_bytes(gzip.compress(text.encode()))
    return folder


def test_a_batch_is_a_request_per_flavor(tmp_path):
    workload = read_azure(a_trace(tmp_path), 1, errors.Faults())
    assert "Cortez" in workload.source
    found = [(each.at, each.flavor.name, each.count) for each in workload.arrivals]
    assert found == [
        *((300, "16/112", 1), (300, "1/0.75", 1), (300, "16/112", 2)),
        *((1800000, "1/0.75", 1), (1800000, "16/112", 1)),
        *((2100000, "1/0.75", 1), (2100000, "16/112", 1)),
    ]
    assert workload.arrivals[1].flavor.memory_mb == 768


def test_lifetimes_are_in_their_bins_or_drawn_from_those_known(tmp_path):
    for seed in range(20):
        arrivals = read_azure(a_trace(tmp_path), seed, errors.Faults()).arrivals
        assert 300 <= arrivals[3].lifetimes[0] < 600
        assert 600 <= arrivals[4].lifetimes[0] < 1200
        assert arrivals[5].lifetimes == (math.inf,)  # none is known to last longer
        assert arrivals[6].lifetimes[0] < 300
        assert all(each < 300 or 600 <= each < 1200 for each in arrivals[2].lifetimes)
    again = read_azure(tmp_path, 19, errors.Faults()).arrivals
    assert [each.lifetimes for each in again] == [each.lifetimes for each in arrivals]


@pytest.mark.parametrize(
    ("part", "text", "complaint"),
    [
        ("v1.train.txt.gz", "300 b,|,\n0 a,|,\n", "line 2: the clock went back: 0 after 300"),
        ("v1.train.txt.gz", "300 b,z,|,\n", "line 1: no flavor 'z' in flav_map.txt"),
        ("v1.train.txt.gz", "soon b,|,\n", "line 1: not of the form"),
        ("v1.train.txt.gz", f"{'9' * 5000} b,|,\n", "line 1: not of the form"),
        ("v1.dev.c2100000.txt.gz", "1800000 U1,|,\n", "line 1: not of the form"),
        ("v1.dev.c2100000.txt.gz", "1800000 U9,|,U2,|,\n", "line 1: no lifetime 'U9' in interval"),
    ],
)
def test_a_bad_line_of_the_trace(tmp_path, part, text, complaint):
    folder = a_trace(tmp_path, **{part: text})
    with pytest.raises(errors.UnusableInput, match=complaint):
        read_azure(folder, 1, errors.Faults())
    assert len(read_azure(folder, 1, errors.Faults(lenient=True)).notes) == 1


@pytest.mark.parametrize(("name", "line"), [("flav_map.txt", 3), ("interval_map.txt", 5)])
def test_a_bad_line_of_a_map(tmp_path, name, line):
    with (a_trace(tmp_path) / name).open("a") as file:
        file.write("x\n")
    with pytest.raises(errors.UnusableInput, match=f"{name}, line {line}: "):
        read_azure(tmp_path, 1, errors.Faults())


def test_a_truncated_part_of_the_trace(tmp_path):
    folder = a_trace(tmp_path)
    path = folder / "v1.train.txt.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(errors.UnusableInput, match=r"v1\.train\.txt\.gz, line \d"):
        read_azure(folder, 1, errors.Faults())
    assert read_azure(folder, 1, errors.Faults(lenient=True)).arrivals
