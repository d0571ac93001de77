"""A real Nova in a virtual environment of its own, made once and kept.

``python -m tests.nova.environment`` makes it if it is not there (or made from other constraints)
and prints the path of its Python.  Only the standard library is needed here.
"""

from __future__ import annotations

from pathlib import Path

from tests.servers.venvs import CHECKOUT, Environment, NotAvailable

__all__ = ["CHECKOUT", "VARIABLE", "NotAvailable", "ensure"]

#: Names the folder, so that several checkouts can share one environment.
VARIABLE = "NOVA_VENV"

#: PyMySQL is no dependency of Nova's, but its driver for MariaDB here.
_PACKAGES = ("nova", "PyMySQL")
_CONSTRAINTS = Path(__file__).with_name("constraints.txt")
_ENVIRONMENT = Environment(".venv-nova", VARIABLE, _CONSTRAINTS, _PACKAGES)


def ensure() -> Path:
    """Make the environment unless it is made; returns its Python, or raises NotAvailable."""
    return _ENVIRONMENT.ensure()


if __name__ == "__main__":
    print(ensure())  # noqa: T201 - the path is what the caller asked for
