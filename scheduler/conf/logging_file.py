"""Check a logging file of Python's kind without using it: use makes log files."""

from __future__ import annotations

import configparser
import logging
import logging.handlers
from collections.abc import Iterator

from scheduler import plugins


def problems(path: str) -> Iterator[str]:
    """Why the file at *path* cannot be used, one line each."""
    parser = configparser.ConfigParser()
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
        for kind, section in (("loggers", "logger"), ("handlers", "handler")):
            yield from _missing(parser, path, kind, section)
        yield from _missing(parser, path, "formatters", "formatter", required=False)
        yield from _bad_classes(parser, path)
    except OSError as error:
        yield f"{path}: {error.strerror}"
    except (configparser.Error, ValueError) as error:
        yield f"{path}: {error}"


def _missing(
    parser: configparser.ConfigParser, path: str, kind: str, section: str, *, required: bool = True
) -> Iterator[str]:
    if not parser.has_option(kind, "keys"):
        if required:
            yield f"{path}: there is no [{kind}] with keys"
        return
    for name in parser.get(kind, "keys").split(","):
        wanted = f"{section}_{name.strip()}"
        if name.strip() and not parser.has_section(wanted):
            yield f"{path}: there is no [{wanted}]"


def _bad_classes(parser: configparser.ConfigParser, path: str) -> Iterator[str]:
    for section in parser.sections():
        name = parser.get(section, "class", raw=True, fallback=None)
        is_one = section.startswith(("handler_", "formatter_"))
        if is_one and name is not None and not _exists(name):
            yield f"{path}: [{section}] class: there is no {name}"


def _exists(name: str) -> bool:
    """True if the class is one of logging's own, or can be imported."""
    found: object = logging
    for word in name.split("."):
        found = getattr(found, word, None)
    if found is not None:
        return True
    try:
        plugins.import_path(name)
    except (ImportError, ValueError):
        return False
    return True
