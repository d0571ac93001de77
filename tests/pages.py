"""The commands that pages of the documentation show, for tests that run them."""

import configparser
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
WRITE_A_FILTER = ROOT / "docs" / "write-a-filter.md"

_BLOCK = re.compile(r"<!-- tested: (\w+) -->\n```sh\n(.*?)```", re.DOTALL)


def commands(page: pathlib.Path, *names: str) -> str:
    """The commands of the tested blocks *names* of *page*, as one script that stops at errors."""
    blocks = dict(_BLOCK.findall(page.read_text(encoding="utf-8")))
    return "set -e\n" + "".join(blocks[name] for name in names)


def settings(page: pathlib.Path, name: str) -> dict[str, dict[str, str]]:
    """The configuration of the tested block *name* of *page*: group → option → value."""
    (text,) = re.findall(
        rf"<!-- tested: {name} -->\n```ini\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    )
    parser = configparser.ConfigParser(default_section="", interpolation=None)
    parser.read_string(text)
    return {group: dict(parser[group]) for group in parser.sections()}


def environment() -> dict[str, str]:
    """What the pages assume: the project's programs on the path, and ``$NST``."""
    programs = pathlib.Path(sys.executable).parent
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "NST": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
