"""Where Debian keeps the programs that tests run, and which package brings each.

Only the standard library is needed here: ``python -m tests.servers.programs`` prints the
packages that are missing, one per line, before anything of the project is installed.
"""

import re
import shutil
from pathlib import Path
from typing import NamedTuple


class Program(NamedTuple):
    """A program, the Debian package that has it, and places outside of PATH to look at."""

    name: str
    package: str
    places: tuple[str, ...] = ()


# Debian's /usr/sbin/rabbitmq-server insists on the account and folders of the system's broker;
# the scripts that it wraps do not.
_RABBITMQ = ("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin",)
_POSTGRESQL = ("usr/lib/postgresql/*/bin",)

RABBITMQ_SERVER = Program("rabbitmq-server", "rabbitmq-server", _RABBITMQ)
RABBITMQCTL = Program("rabbitmqctl", "rabbitmq-server", _RABBITMQ)
EPMD = Program("epmd", "rabbitmq-server")  # of the Erlang that it needs
MARIADBD = Program("mariadbd", "mariadb-server", ("usr/sbin",))
MARIADB_INSTALL_DB = Program("mariadb-install-db", "mariadb-server")
INITDB = Program("initdb", "postgresql", _POSTGRESQL)
POSTGRES = Program("postgres", "postgresql", _POSTGRESQL)
SYSTEMD_ANALYZE = Program("systemd-analyze", "systemd")  # no server, but its units are tested
SYSTEMD = Program("systemd", "systemd", ("usr/lib/systemd", "lib/systemd"))
SYSTEMCTL = Program("systemctl", "systemd")
SYSUSERS = Program("systemd-sysusers", "systemd")
JOURNALD = Program("systemd-journald", "systemd", ("usr/lib/systemd", "lib/systemd"))
JOURNALCTL = Program("journalctl", "systemd")
# A module of Python, which is used by other interpreters of the same release as well.
SYSTEMD_PYTHON = Program(
    "journal.py", "python3-systemd", ("usr/lib/python3/dist-packages/systemd",)
)
UNSHARE = Program("unshare", "util-linux")
NSENTER = Program("nsenter", "util-linux")
LOGROTATE = Program("logrotate", "logrotate", ("usr/sbin",))
PROMTOOL = Program("promtool", "prometheus")  # runs the unit tests of the alerts
CHROMIUM = Program("chromium", "chromium")  # shows the status page
DH_VIRTUALENV = Program("dh_virtualenv", "dh-virtualenv")  # builds the Debian package, at night
IP = Program("ip", "iproute2", ("usr/sbin", "sbin"))  # makes networks that can be cut
# Not a program but what is loaded into one, so that its clock is not the machine's.
FAKETIME = Program("libfaketime.so.1", "libfaketime", ("usr/lib/*/faketime",))

ALL = (
    RABBITMQ_SERVER,
    RABBITMQCTL,
    EPMD,
    MARIADBD,
    MARIADB_INSTALL_DB,
    INITDB,
    POSTGRES,
    SYSTEMD_ANALYZE,
    SYSTEMD,
    SYSTEMCTL,
    SYSUSERS,
    JOURNALD,
    JOURNALCTL,
    SYSTEMD_PYTHON,
    UNSHARE,
    NSENTER,
    LOGROTATE,
    PROMTOOL,
    CHROMIUM,
    IP,
    FAKETIME,
)


def find(program: Program, root: Path = Path("/")) -> Path | None:
    """The program's path, or None; of several versions installed, the newest."""
    found = [path for place in program.places for path in root.glob(f"{place}/{program.name}")]
    if found:
        return max(found, key=_version)
    on_path = shutil.which(program.name)
    return Path(on_path) if on_path else None


def missing_packages(programs: tuple[Program, ...] = ALL, root: Path = Path("/")) -> list[str]:
    """The Debian packages to install for those *programs* that are not there."""
    return sorted({program.package for program in programs if find(program, root) is None})


def _version(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


if __name__ == "__main__":
    for package in missing_packages():
        print(package)  # noqa: T201 - the list is what the caller asked for
