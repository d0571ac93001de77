"""Command lines made of a dataclass: one option for each field."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

Plan = TypeVar("Plan")


def option(default: Any, text: str, choices: Sequence[str] | None = None) -> Any:
    """A field with its help, and the values that it may have."""
    return dataclasses.field(default=default, metadata={"help": text, "choices": choices})


def parse(kind: type[Plan], prog: str, about: str | None, argv: Sequence[str] | None) -> Plan:
    """A *kind* of the command line *argv*; by default of this process."""
    parser = argparse.ArgumentParser(
        prog=prog, description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for each in dataclasses.fields(kind):  # type: ignore[arg-type]
        parser.add_argument(
            "--" + each.name.replace("_", "-"), type=type(each.default), default=each.default,
            choices=each.metadata["choices"], help=each.metadata["help"],
        )  # fmt: skip
    return kind(**vars(parser.parse_args(argv)))
