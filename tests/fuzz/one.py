"""One target in a process of its own: ``python -m tests.fuzz.one NAME INPUTS SEED FILE``.

``one field`` goes through all changes of one field, what is named ``by chance`` is changed at
random.  For all others atheris changes those inputs further that find new ways through the code; it
has to see every module before it is imported: none of the scheduler is above.
"""

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
ONE_FIELD, BY_CHANCE = "one field", " by chance"
"""Changed without looking at what ways they take, which costs a quarter."""


def main(name: str, inputs: int, seed: int, out: pathlib.Path) -> None:
    """Give the target *name* so many inputs, and write what became of them to *out*."""
    from scheduler import concurrency  # noqa: PLC0415

    concurrency.activate(concurrency.THREADING)
    if name != ONE_FIELD and not name.endswith(BY_CHANCE):
        try_by_coverage(name, inputs, seed, out)
        return
    from tests.fuzz import targets, world  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, world.a_world(pathlib.Path(folder)) as made:
        if name == ONE_FIELD:
            tally = targets.changed_fields(made, inputs)
        else:
            target = targets.named(name.removesuffix(BY_CHANCE))
            tally = targets.tried_out(made, target, inputs, seed)
    out.write_text(json.dumps(tally.to_plain()), encoding="utf-8")


def try_by_coverage(name: str, inputs: int, seed: int, out: pathlib.Path) -> None:
    """Have atheris change the inputs of the target."""
    import atheris  # noqa: PLC0415 - before the scheduler

    with atheris.instrument_imports(include=["scheduler"], enable_loader_override=False):
        from tests.fuzz import targets, verdicts, world  # noqa: PLC0415
    target, tally = targets.named(name), verdicts.Tally()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
        served: Any = ending.enter_context(world.a_world(pathlib.Path(folder), target.layout))
        corpus = pathlib.Path(folder) / "corpus"
        corpus.mkdir()
        for number, each in enumerate(target.corpus()):
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
        words = ["fuzz", *limits, "-verbosity=0", "-timeout=120", str(corpus)]
        atheris.Setup(words, try_out, custom_mutator=target.mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4]))
