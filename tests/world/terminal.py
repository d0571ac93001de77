"""Programs run as a person would, and what that person reads."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.world import process

DAEMON: Final = "nova-scheduler"
MANAGE: Final = "nova-scheduler-manage"
#: Ends of lines that only a programmer understands.
FOREIGN: Final = ("Traceback", "invalid literal", "[Errno", "codec can't", "attempts left")


def say(
    folder: Path,
    command: str,
    lines: str,
    database: str,
    bus: str = "127.0.0.1:1/",
    run_by: Sequence[str] = (),
) -> tuple[int, list[str]]:
    """Run *command* with a file of four right lines and *lines*; the status and what is said."""
    address = bus if "://" in bus else f"rabbit://u:s3cret@{bus}"
    right = f"[DEFAULT]\ntransport_url = {address}\n[database]\nconnection = {database}\n"
    (folder / "nova.conf").write_text(right + lines + "\n")
    name, *words = command.split()
    done = process.run(name, "--config-file", "nova.conf", *words, folder=folder, run_by=run_by)
    said = done.stdout + done.stderr
    assert [each for each in (*FOREIGN, "s3cret") if each in said] == [], said
    errors = [line for line in done.stderr.splitlines() if f"{name}" in line and "error: " in line]
    assert len(errors) <= 1, said
    return done.returncode, said.splitlines()


def assert_named(said: list[str], names: tuple[str, ...]) -> None:
    assert [line for line in said if all(name in line for name in names)], "\n".join(said)
