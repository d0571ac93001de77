"""Pages of the programs and their commands, from their parsers."""

import argparse
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from manual.parsers import CommandLine
from manual.sections import OF_PROGRAM

FOLDER = Path("docs/commands")
WIDTH = 110
HEAD = """# Commands

Made from the programs' own parsers. Every command takes the options of its program before its name,
and `-f json`, `-f yaml` or `-f value` behind it. `--json` is `-f json`.

"""


def pages(programs: Iterable[CommandLine]) -> Iterator[tuple[Path, str]]:
    """Every page with its path."""
    known = list(programs)
    for program in known:
        yield FOLDER / f"{program.name}.md", _page(program)
    items = [f"* [{each.name}]({each.name}.md): {_lowered(each.description)}" for each in known]
    names = "\n".join(each.name for each in known)
    index = "\n".join(map(_item, items))
    yield FOLDER / "index.md", f"{HEAD}{index}\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def _page(program: CommandLine) -> str:
    parts = [f"# {program.name}", _paragraph(program.description)]
    for name, command in program.commands.items():
        parts.append(f"## {name}")
        parts += [_paragraph(each) for each in (command.description or "").split("\n\n")]
        parts += _arguments(command)
    parts += ["## Options of the program", *_arguments(program.options)]
    statuses = OF_PROGRAM[program.name]["exit status"].strip().split("\n\n")
    parts += ["## Exit status", *map(_paragraph, statuses)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    """One list of all arguments and options; the formatter fills in defaults."""
    formatter = parser._get_formatter()
    lines = []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or "--help" in action.option_strings:
            continue
        words = formatter._format_action_invocation(action)
        help_text = formatter._expand_help(action) if action.help else ""
        said = " ".join(help_text.split()).rstrip(".")
        lines.append(_item(f"* `{words}`: {_escaped(said)}." if said else f"* `{words}`"))
    return ["\n".join(lines)] if lines else []


def _lowered(text: str) -> str:
    first = " ".join(text.split()).partition(". ")[0].rstrip(".")
    return f"{first[:1].lower()}{first[1:]}."


def _paragraph(text: str) -> str:
    return textwrap.fill(_escaped(" ".join(text.split())), WIDTH, break_on_hyphens=False)


def _item(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _escaped(text: str) -> str:
    return text.replace("<", r"\<").replace("*", r"\*")
