"""The scripts behind make: what they look for, and that they can be read by the shell."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT
from tests.servers import programs
from tests.servers.fixtures import require

SCRIPTS = sorted(path for path in (ROOT / ".ci").iterdir() if path.is_file())


def targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))


def test_make_offers_what_the_documents_name() -> None:
    assert targets() >= {"demo", "test", "venv", "lint", "sample-config", "clean"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_well_formed(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/bash\n")
    assert "\nset -euo pipefail\n" in text
    assert script.stat().st_mode & 0o111
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bindep_names_every_server() -> None:
    lines = (ROOT / "bindep.txt").read_text(encoding="utf-8").splitlines()
    packages = {line.split()[0] for line in lines if line and not line.startswith("#")}
    assert packages >= {program.package for program in programs.ALL}


def test_the_list_of_missing_packages_needs_nothing_installed() -> None:
    """The set-up asks before there is an environment, hence the switch that hides packages."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "tests.servers.programs"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {program.package for program in programs.ALL}


def test_without_root_the_missing_servers_are_named(tmp_path: Path) -> None:
    """A PATH with the shell's tools and an ``id`` that is not root, and nothing of the servers."""
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "")
    for name, text in {"id": "echo 1000", "python3": "echo rabbitmq-server"}.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
    script = ROOT / ".ci/install-servers"
    done = subprocess.run(
        [str(script)], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Not installed, tests that need them are skipped: rabbitmq-server" in done.stdout


@pytest.mark.parametrize(
    ("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_a_missing_server_skips_but_fails_the_ci(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="missing Debian packages: a-package"):
        require((programs.Program("no-such-program", "a-package"),))
