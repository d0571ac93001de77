"""Manual pages and completion say what the programs' parsers say."""

import re
import subprocess
import sys

import pytest

from scheduler import exit_codes
from tests.house.tree import ROOT

FOLDERS = (
    *("manual/man8", "etc/bash_completion.d"),
    *("docs/filters", "docs/weighers", "docs/commands"),
)
PAGES = ("docs/options.md", "docs/metrics.md")
PROGRAMS = ("nova-compute-stub", "nova-conductor-stub", "nova-scheduler", "nova-scheduler-manage")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manual")
    command = [sys.executable, "-m", "manual", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", [*(f"{each}/*" for each in FOLDERS), *PAGES])
def test_what_is_here_is_what_would_be_made(made, name):
    here, there = (
        {each.name: each.read_text(encoding="utf-8") for each in folder.glob(name)}
        for folder in (ROOT, made)
    )
    assert here
    assert sorted(there) == sorted(here)
    outdated = [each for each in here if here[each] != there[each]]
    assert outdated == [], "run: make manual"


def test_every_program_has_its_page_and_completion():
    pages = [path.name for path in sorted((ROOT / FOLDERS[0]).iterdir())]
    completions = [path.name for path in sorted((ROOT / FOLDERS[1]).iterdir())]
    assert pages == sorted(f"{name}.8" for name in PROGRAMS)
    assert completions == list(PROGRAMS)


def test_every_exit_status_is_documented():
    text = (ROOT / "manual/man8/nova-scheduler-manage.8").read_text(encoding="utf-8")
    section = text.partition(".SH EXIT STATUS")[2].partition(".SH")[0]
    numbers = {value for name, value in vars(exit_codes).items() if name.isupper()}
    assert numbers
    assert {str(number) for number in numbers} <= set(re.findall(r"\d+", section))


@pytest.mark.parametrize(
    ("words", "among"),
    [
        (["nova-scheduler", "--config-f"], ["--config-file"]),
        (["nova-compute-stub", "--fail"], ["--fail-rate"]),
        (["nova-conductor-stub", "bo"], ["boot"]),
        (["nova-conductor-stub", "boot", "--fla"], ["--flavor"]),
        (["nova-scheduler-manage", "aggregate", "add"], ["add-host"]),
        (["nova-scheduler-manage", "broker", "check", "--time"], ["--timeout"]),
        (["nova-scheduler-manage", "replay", "--comp"], ["--compact"]),
    ],
    ids=" ".join,
)
def test_bash_completes(words, among):
    file = ROOT / FOLDERS[1] / words[0]
    quoted = " ".join(f"'{word}'" for word in words)
    script = (
        f"source '{file}'; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1};"
        f"$(complete -p {words[0]} | sed 's/.*-F \\([^ ]*\\).*/\\1/') {words[0]};"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.strip() for line in done.stdout.splitlines()] == among
