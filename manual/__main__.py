"""Write manual pages, completion and pages made from the code: here, or below another folder."""

import argparse
from pathlib import Path

from manual import commands, completion, metrics, options, pages, plugins
from manual.parsers import all_programs


def main() -> None:
    """Write every file."""
    parser = argparse.ArgumentParser(prog="python -m manual", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1])
    folder: Path = parser.parse_args().folder
    programs = all_programs()
    texts: dict[Path, str] = {options.FILE: options.text_of(), metrics.FILE: metrics.text()}
    texts |= {**dict(plugins.pages()), **dict(commands.pages(programs))}
    for program in programs:
        texts[pages.FOLDER / f"{program.name}.{pages.SECTION}"] = pages.text_of(program)
        texts[completion.FOLDER / program.name] = completion.text_of(program)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


main()
