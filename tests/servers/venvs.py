"""Programs that are pip-installed into a virtual environment of their own, made once and kept.

``python -m tests.servers.venvs nova`` makes that of Nova if it is not there (or made from other
constraints) and prints the path of its Python.  Only the standard library is needed here.
"""

import configparser
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

_STAMP = "made-from"
#: What the tests set: pip connects to a package index in the world.
_TRUST_IN_NOBODY = ("SSL_CERT_FILE", os.devnull)


class NotAvailable(Exception):
    """The environment is not there and cannot be made, for the reason in the text."""


@dataclass(frozen=True)
class Environment:
    """*packages* at the exact versions of the file *constraints*.

    *variable* names the folder, so that several checkouts can share one; *name* is that of the
    folder in the checkout otherwise.  *pinned* are exact versions beside the file's, or instead.
    """

    name: str
    variable: str
    constraints: Path
    packages: tuple[str, ...]
    pinned: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the environment is, or will be."""
        return Path(os.environ.get(self.variable) or CHECKOUT / self.name)

    @property
    def fingerprint(self) -> str:
        """What the environment depends on: the exact versions, and the Python below it."""
        digest = hashlib.sha256(self.constraints.read_bytes()).hexdigest()
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return " ".join([digest, version, *self.pinned, *self.packages]) + "\n"

    @property
    def is_made(self) -> bool:
        """Whether the environment is there, complete and from these constraints."""
        stamp = self.folder / _STAMP
        return stamp.is_file() and stamp.read_text(encoding="utf-8") == self.fingerprint

    def ensure(self) -> Path:
        """Make the environment unless it is made; returns its Python.

        Raises NotAvailable with pip's last lines when the packages cannot be had.
        """
        with self._only_one():
            if not self.is_made:
                self._make()
        return self.folder / "bin" / "python"

    @contextlib.contextmanager
    def _only_one(self) -> Iterator[None]:
        """Keep other processes from making the same environment at the same time."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        lock_path = self.folder.with_name(f"{self.folder.name}.lock")
        with lock_path.open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _make(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        venv.create(self.folder, with_pip=True)
        pip = [str(self.folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        pinned = {each.partition("==")[0] for each in self.pinned}
        lines = self.constraints.read_text(encoding="utf-8").splitlines(keepends=True)
        constraints = self.folder / "constraints.txt"
        constraints.write_text("".join(x for x in lines if x.partition("==")[0] not in pinned))
        done = subprocess.run(
            [*pip, "install", "-q", "-c", str(constraints), *self.pinned, *self.packages],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={k: v for k, v in os.environ.items() if (k, v) != _TRUST_IN_NOBODY},
        )
        if done.returncode:
            wrong = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            told = " ".join(wrong[-2:]) or done.stderr
            raise NotAvailable(f"pip cannot install {self.packages}: {told}")
        (self.folder / _STAMP).write_text(self.fingerprint, encoding="utf-8")


def _constraints(name: str) -> Path:
    return Path(__file__).with_name(f"{name}-constraints.txt")


#: PyMySQL is the driver for MariaDB of both here, waitress the WSGI server of Placement in tests,
#: uwsgi that in benchmarks.
NOVA = Environment(".venv-nova", "NOVA_VENV", _constraints("nova"), ("nova", "PyMySQL"))
PLACEMENT = Environment(
    ".venv-placement",
    "PLACEMENT_VENV",
    _constraints("placement"),
    ("openstack-placement", "PyMySQL", "waitress", "pyuwsgi==2.0.30.post1"),
)


def _requirements_of_the_project() -> list[str]:
    parser = configparser.ConfigParser()
    parser.read(CHECKOUT / "setup.cfg", encoding="utf-8")
    return parser["options"]["install_requires"].split()


#: What Nova's functional tests need, and what this project needs beside them.
_FOR_FUNCTIONAL_TESTS = (
    *("psycopg2-binary", "python-barbicanclient", "types-paramiko", "wsgi-intercept"),
    *("ddt", "fixtures", "gabbi", "microversion-parse", "oslo.vmware", "oslotest"),
    *("osprofiler", "requests-mock", "testresources", "testscenarios", "testtools"),
    *_requirements_of_the_project(),
)
#: Releases of Nova whose functional tests can be run.
FUNCTIONAL_RELEASES = {
    "34": ("nova==34.0.0", "openstack-placement==16.0.0"),
    "33": ("nova==33.0.2", "openstack-placement==15.0.0", "oslo.policy==5.1.0"),
    "32": ("nova==32.2.1", "openstack-placement==14.0.0", "oslo.policy==5.1.0"),
}


def nova_functional(release: str) -> Environment:
    """The environment with that *release* of Nova for its functional tests."""
    return Environment(
        f".venv-nova-functional-{release}",
        f"NOVA_FUNCTIONAL_VENV_{release}",
        _constraints("nova-functional"),
        _FOR_FUNCTIONAL_TESTS,
        FUNCTIONAL_RELEASES[release],
    )


if __name__ == "__main__":
    known = {"nova": NOVA, "placement": PLACEMENT, "nova-functional": nova_functional("34")}
    print(known[sys.argv[1]].ensure())  # noqa: T201
