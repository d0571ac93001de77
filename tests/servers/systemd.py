"""A real systemd, booted as the first process of namespaces of its own.

It sees this machine's programs and network, none of its units, and folders of its own: /etc is a
copy, /tmp, /var and /run are empty before it starts, as its first act is to clean up there.
"""

import errno
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import uuid
from pathlib import Path
from typing import Any, Self

import psutil

from tests.servers import programs
from tests.servers.private import Opened
from tests.waiting import wait_until

PROGRAMS = (
    programs.SYSTEMD,
    programs.SYSTEMCTL,
    programs.SYSUSERS,
    programs.JOURNALD,
    programs.JOURNALCTL,
    programs.SYSTEMD_PYTHON,
    programs.UNSHARE,
    programs.NSENTER,
)
COMMAND_SECONDS = 90
START_SECONDS = 60
#: What services without further ado are started after and stopped before; there is nothing in it.
TARGETS = ("default", "sysinit", "basic", "shutdown", "network-online")
ROOT = Path(__file__).parents[2]

#: Where a machine sees the test's folder, the interpreter, the environment and the project.
SHARE = Path("/mnt/share")
PYTHON = Path("/mnt/python")
ENVIRONMENT = Path("/mnt/environment")
PROJECT = Path("/mnt/project")
INSTALLED_UNITS = Path("/usr/local/lib/systemd/system")

_BOOT = f"""
set -eu
mount --make-rprivate /
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/etc {SHARE} {PYTHON} {ENVIRONMENT} {PROJECT}
mount --bind "$1" {SHARE}
mount --bind "$2" {PYTHON}
mount --bind "$3" {ENVIRONMENT}
mount --bind "$4" {PROJECT}
cp -a /etc/. /mnt/etc
mount --bind /mnt/etc /etc
for folder in /tmp /var /run; do
    mount -t tmpfs -o mode=755 tmpfs "$folder"
done
mkdir -p /var/lib /var/log /var/tmp
chmod 1777 /tmp /var/tmp
for folder in /tmp /var /run; do
    [ "$(stat -f -c %T "$folder")" = tmpfs ]
    [ -z "$(ls -A "$folder" | grep -vx -e lib -e log -e tmp)" ]
done
{SHARE}/setup
exec env -i PATH="$PATH" container=lxc SYSTEMD_UNIT_PATH={SHARE}/units:{INSTALLED_UNITS} \\
    "$5" --log-target=console --show-status=no
"""


JOURNAL_UNIT = "journal.service"
_JOURNAL = f"""
[Unit]
DefaultDependencies=no
[Service]
Type=notify
ExecStart={programs.find(programs.JOURNALD)}
"""


class Impossible(Exception):
    """No systemd can be booted here."""


class Machine(Opened):
    """One systemd, with the units that are put into :attr:`units` before it is started.

    *setup* is what a shell does in its surroundings before it runs.
    """

    def __init__(self, setup: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nst-systemd-"))
        self.folder.chmod(0o755)
        self.units = self.folder / "units"
        self.units.mkdir()
        for name in TARGETS:
            (self.units / f"{name}.target").write_text("[Unit]\nDescription=Nothing\n")
        (self.units / JOURNAL_UNIT).write_text(_JOURNAL)
        if module := _journal_module():
            (self.folder / "modules").mkdir()
            (self.folder / "modules" / "systemd").symlink_to(module)
        script = self.folder / "setup"
        script.write_text(f"#!/bin/sh -eu\n{setup}\n")
        script.chmod(0o755)
        self._console = self.folder / "console"
        self._cgroup = _cgroup_folder() / f"nst-{uuid.uuid4().hex[:12]}"
        self._unshare: subprocess.Popen[bytes] | None = None
        self._pid = 0

    @property
    def console(self) -> str:
        return self._console.read_text(encoding="utf-8", errors="replace")

    def start(self) -> Self:
        """Boot; raises Impossible where namespaces and mounts are not to be had."""
        try:
            self._cgroup.mkdir()
        except OSError as error:
            raise Impossible(f"no control group can be made: {error}") from error
        namespaces = ["--pid", "--mount", "--uts", "--ipc", "--cgroup", "--mount-proc"]
        boot = ["sh", "-c", _BOOT, "boot", str(self.folder), sys.base_prefix, sys.prefix, str(ROOT)]
        with self._console.open("wb") as console:
            self._unshare = subprocess.Popen(
                # In the new group first, so that it is the root of all that systemd sees.
                ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(self._cgroup)]
                + ["unshare", "--fork", "--kill-child", *namespaces, *boot]
                + [str(programs.find(programs.SYSTEMD))],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
            )
        wait_until(self._is_up, START_SECONDS, lambda: f"systemd: {self.console}")
        return self

    def _is_up(self) -> bool:
        assert self._unshare is not None
        if self._unshare.poll() is not None:
            raise Impossible(f"systemd did not boot: {self.console}")
        for child in psutil.Process(self._unshare.pid).children():
            if child.name() == "systemd":
                self._pid = child.pid
                return self.run("systemctl", "show-environment").returncode == 0
        return False

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command inside; what it prints and its status are the caller's to judge."""
        return subprocess.run(
            ["nsenter", "--target", str(self._pid), "--all", *command],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def systemctl(self, *arguments: str) -> str:
        """Run systemctl inside; raises AssertionError with all it says when it fails."""
        done = self.run("systemctl", *arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}\n{self.console}"
        return done.stdout

    def show(self, unit: str, name: str) -> str:
        """A property of a unit, as ``systemctl show`` has it."""
        return self.systemctl("show", "--property", name, "--value", unit).strip()

    @property
    def can_journal(self) -> bool:
        """Whether Python inside has the module for the journal."""
        return (self.folder / "modules").is_dir()

    def journal(self, unit: str) -> list[dict[str, Any]]:
        """The journal's entries of a unit, with all fields."""
        done = self.run("journalctl", "--output=json", "--no-pager", f"_SYSTEMD_UNIT={unit}")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def close(self) -> None:
        """End everything inside at once, and leave nothing behind."""
        if self._unshare is not None:
            self._unshare.kill()  # the kernel ends the first process inside, and so all others
            self._unshare.wait()
        if self._cgroup.is_dir():
            wait_until(lambda: _remove(self._cgroup), 60, "the end of all inside")
        shutil.rmtree(self.folder)


def python_settings() -> str:
    """Lines of a unit that let this environment's Python run inside, for any account."""
    packages = ENVIRONMENT / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    return (
        f"Environment=PYTHONPATH={PROJECT}:{packages}:{SHARE}/modules\n"
        f"Environment=LD_LIBRARY_PATH={PYTHON}/lib\n"
        "Environment=PYTHONDONTWRITEBYTECODE=1\n"
    )


def python() -> str:
    """This environment's interpreter, as seen inside."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"{PYTHON}/bin/python{version}"


def _journal_module() -> Path | None:
    """The folder of the module for the journal, if it is one for this release of Python."""
    found = programs.find(programs.SYSTEMD_PYTHON)
    tag = f"cpython-{sys.version_info.major}{sys.version_info.minor}-"
    if found is None or not any(tag in path.name for path in found.parent.glob("_journal.*.so")):
        return None
    return found.parent


def _cgroup_folder() -> Path:
    """Where this machine has its control groups of version 2."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] == "cgroup2":
            return Path(before.split()[4])
    raise Impossible("no control groups of version 2 are mounted")


def _remove(group: Path) -> bool:
    """Remove *group* and the groups in it; False while one of them is still busy."""
    try:
        for folder, _folders, _files in os.walk(group, topdown=False):
            Path(folder).rmdir()
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True
