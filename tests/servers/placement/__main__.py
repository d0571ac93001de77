"""Makes Placement's environment if it is not there, and prints the path of its Python."""

from __future__ import annotations

from tests.servers.placement import ENVIRONMENT

print(ENVIRONMENT.ensure())  # noqa: T201 - the path is what the caller asked for
