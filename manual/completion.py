"""Completion for bash."""

import argparse
from pathlib import Path
from typing import Any

import shtab

from manual.parsers import CommandLine

FOLDER = Path("etc/bash_completion.d")
MADE = "# Made from the program's own parser; goes to /usr/share/bash-completion/completions/.\n"


def text_of(program: CommandLine) -> str:
    """The file of one program."""
    script = shtab.complete(_tree(program), shell="bash")
    lines = [line.rstrip() for line in script.splitlines()]
    return MADE + "\n".join(lines).strip("\n") + "\n"


def _tree(program: CommandLine) -> argparse.ArgumentParser:
    """The parser with a level of sub-commands for each word of a command."""
    root = argparse.ArgumentParser(prog=program.name, parents=[program.options], add_help=False)
    levels: dict[tuple[str, ...], Any] = {}

    def level(words: tuple[str, ...]) -> Any:
        if words not in levels:
            above = _add(level(words[:-1]), words[-1]) if words else root
            levels[words] = above.add_subparsers()
        return levels[words]

    for name, command in program.commands.items():
        *words, last = name.split()
        _add(level(tuple(words)), last, parents=[command])
    return root


def _add(to: Any, word: str, **options: Any) -> argparse.ArgumentParser:
    """A parser for *word*; the library leaves out what has no help."""
    added: argparse.ArgumentParser = to.add_parser(word, help=word, add_help=False, **options)
    return added
