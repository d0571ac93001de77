"""Commands as processes: what they load, and how they end when nobody reads them."""

import os
import signal
import subprocess

import pytest

from tests.world import process
from tests.world.terminal import DAEMON, MANAGE

#: What a command may not load: it is long in loading, and not what the command is about.
HEAVY = ("sqlalchemy", "numpy", "alembic", "eventlet", "oslo_messaging")
OF_THE_BUS = ("numpy", "alembic", "eventlet", "oslo_messaging")
FORBIDDEN = {
    "--version; --help": HEAVY,
    "db version; host list; service list; aggregate list; flavor list": OF_THE_BUS,
    "claims list": ("alembic", "eventlet", "oslo_messaging"),
    "broker check": ("numpy", "alembic"),
}


@pytest.mark.parametrize("commands", FORBIDDEN)
def test_commands_load_only_what_they_need(tmp_path, tables, commands):
    (tmp_path / "nova.conf").write_text(f"[database]\nconnection = {tables}\n")
    words = [each.split() for each in commands.split("; ")]
    if not commands.startswith("--"):
        words = [["--config-file", f"{tmp_path}/nova.conf", *each] for each in words]
    path = tmp_path / "program.py"
    path.write_text(
        f"""import contextlib, sys
from scheduler.cmd.manage import main
for sys.argv[1:] in {words}:
    with contextlib.suppress(SystemExit):
        main()
print([*sys.modules])
"""
    )
    loaded = os.popen(f"{process.program('python')} {path}").read().splitlines()[-1]
    assert "'scheduler.cmd.manage'" in loaded
    assert [name for name in FORBIDDEN[commands] if f"'{name}'" in loaded] == []


@pytest.mark.parametrize("words", [f"{MANAGE} config show --all", f"{DAEMON} --help"])
def test_output_that_nobody_reads_ends_a_program_without_a_word(words):
    name, *arguments = words.split()
    reading_end, writing_end = os.pipe()
    os.close(reading_end)
    command = [process.program(name), *arguments]
    done = subprocess.run(command, stdout=writing_end, stderr=subprocess.PIPE, check=False)
    os.close(writing_end)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")
