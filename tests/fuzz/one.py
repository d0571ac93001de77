"""One target in a process of its own: ``python -m tests.fuzz.one NAME INPUTS SEED FILE``.

atheris watches which ways the inputs take through the scheduler's code, and changes those further
that find new ones; it has to see every module before anything imports it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import pathlib
import sys
import tempfile
from typing import Any

HUNG_SECONDS = 60.0
LONGEST_INPUT = 1 << 16


def main(name: str, inputs: int, seed: int, out: pathlib.Path) -> None:
    """Give the target *name* so many inputs, and write what became of them to *out*."""
    import atheris  # noqa: PLC0415 - before the scheduler

    from scheduler import concurrency  # noqa: PLC0415

    concurrency.activate(concurrency.THREADING)
    with atheris.instrument_imports(include=["scheduler"], enable_loader_override=False):
        from tests.fuzz import targets, world  # noqa: PLC0415
        from tests.fuzz.tally import Tally  # noqa: PLC0415
    target = next(each for each in targets.TARGETS if each.name == name)
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
        served: Any = ending.enter_context(world.a_world(pathlib.Path(folder), **target.options))
        corpus = pathlib.Path(folder) / "corpus"
        corpus.mkdir()
        for number, each in enumerate(target.seeds()):
            (corpus / f"{number:04}").write_bytes(each)

        def try_out(data: bytes) -> None:
            faulthandler.dump_traceback_later(HUNG_SECONDS, exit=True)
            tally.count(data, lambda: target.try_out(served, data))
            if tally.inputs >= inputs:
                out.write_text(json.dumps(tally.to_plain()), encoding="utf-8")
                os._exit(0)  # the library has no other end

        limits = [f"-seed={seed}", f"-max_len={LONGEST_INPUT}", "-len_control=0", "-rss_limit_mb=0"]
        # What is slow, in processor time, is noted above, and nothing is left where this was run.
        limits += ["-report_slow_units=1000000", f"-artifact_prefix={folder}/"]
        atheris.Setup(
            ["fuzz", *limits, "-verbosity=0", "-timeout=120", str(corpus)],
            try_out,
            custom_mutator=target.mutate,
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4]))
