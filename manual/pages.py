"""The manual pages."""

import argparse
from pathlib import Path

from argparse_manpage.manpage import Manpage

import scheduler
from manual.parsers import CommandLine
from manual.sections import OF_PROGRAM

FOLDER = Path("manual/man8")
SECTION = "8"
#: Pages that differ by the day they were made on could not be compared.
NO_DATE = " "


def text_of(program: CommandLine) -> str:
    """The page of *program*, in the language of man."""
    page = Manpage(
        _with_commands(program),
        {
            "description": _sentence(program.description),
            "manual_section": SECTION,
            "manual_title": "nova-scheduler, standalone",
            "project_name": "nova-scheduler",
            "version": scheduler.__version__,
            "date": NO_DATE,
        },
        format="single-commands-section",
    )
    page.add_section("synopsis", "=", _synopsis(program))
    for heading, text in OF_PROGRAM[program.name].items():
        page.add_section(heading, "=", _escaped(text))
    lines = [line.rstrip() for line in str(page).splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def _with_commands(program: CommandLine) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program.name,
        description=program.description,
        parents=[program.options],
        add_help=False,
    )
    if not program.commands:
        return parser
    commands = parser.add_subparsers(title="commands")
    for name, command in program.commands.items():
        commands.add_parser(
            name, parents=[command], description=command.description, add_help=False
        )
    return parser


def _synopsis(program: CommandLine) -> str:
    command = r" \fICOMMAND\fR ..." if program.commands else ""
    return rf"\fB{_escaped(program.name)}\fR [\fIOPTION\fR ...]{command}"


def _sentence(text: str) -> str:
    """The first sentence, without its full stop."""
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def _escaped(text: str) -> str:
    return text.strip("\n").replace("\\", r"\e").replace("-", r"\-").replace("\n\n", "\n.PP\n")
