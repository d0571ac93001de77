"""The scripts behind make: what they look for, and that they can be read by the shell."""

import re
import subprocess

import pytest

from tests.house.tree import ROOT
from tests.servers import programs
from tests.servers.fixtures import require

SCRIPTS = sorted(path for path in (ROOT / ".ci").iterdir() if path.is_file())


def targets():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))


def test_make_offers_what_the_documents_name():
    assert targets() >= {"demo", "test", "venv", "lint", "sample-config", "clean"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_well_formed(script):
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/bash\n")
    assert "\nset -euo pipefail\n" in text
    assert script.stat().st_mode & 0o111
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bindep_names_every_server():
    lines = (ROOT / "bindep.txt").read_text(encoding="utf-8").splitlines()
    packages = {line.split()[0] for line in lines if line and not line.startswith("#")}
    assert packages >= {program.package for program in programs.ALL}


@pytest.mark.parametrize(
    ("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_a_missing_server_skips_but_fails_the_ci(ci, outcome, monkeypatch):
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="missing Debian packages: a-package"):
        require((programs.Program("no-such-program", "a-package"),))
