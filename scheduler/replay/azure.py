"""The public Azure trace of 2017 in its packed form: arrivals by tenant, lifetimes in bins.

Cortez et al., Resource Central, SOSP 2017; data under CC-BY-4.0.  A tenant's batch becomes one
request per flavor.  A lifetime is drawn evenly within its bin.  Where it is not known, or the
server outlived the trace, it is drawn from those known of the flavor that lasted so long.
"""

import bisect
import gzip
import itertools
import math
import random
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any, Final

from scheduler import errors, objects
from scheduler.replay.workload import Arrival, Workload, a_flavor

SOURCE: Final = (
    "Azure public VM trace 2017 (Cortez et al., Resource Central, SOSP 2017; CC-BY-4.0), 30 days"
)
FLAVORS, BINS = "flav_map.txt", "interval_map.txt"
#: Arrivals, with their lifetimes where there are any.
PARTS: Final = (
    ("v1.train.txt.gz", None),
    ("v1.dev.txt.gz", "v1.dev.c2100000.txt.gz"),
    ("v1.test.txt.gz", "v1.test.c2591400.txt.gz"),
)
#: Flavor and lifetime of each server.
Batch = list[tuple[str, str]]


class _Lifetimes:
    """The lifetimes that *batches* tell, by flavor, to draw others from."""

    def __init__(
        self, bins: dict[int, list[int]], batches: Iterable[Batch], rng: random.Random
    ) -> None:
        """*bins*: the rows of each by its number, one row every 300 s."""
        self._rng, self._bins = rng, bins
        self._texts: dict[str, list[str]] = defaultdict(list)
        for flavor, text in itertools.chain.from_iterable(batches):
            self._texts[flavor].append(text)
        self._ended = {
            flavor: sorted(int(text[1:]) for text in texts if text[0] == "U")
            for flavor, texts in self._texts.items()
        }

    def seconds(self, flavor: str, text: str) -> float:
        """The lifetime that *text* says, drawn from what is known where that is not all."""
        if not text:
            texts = self._texts[flavor]
            text = texts[self._rng.randrange(len(texts))] if texts else "C0"
        number, ended = int(text[1:]), self._ended.get(flavor, [])
        if text[0] != "U":
            first = bisect.bisect_right(ended, number)
            if first == len(ended):
                return math.inf
            number = ended[self._rng.randrange(first, len(ended))]
        rows = self._bins[number]
        return rows[0] + self._rng.random() * (rows[-1] + 300 - rows[0])


def read_azure(folder: Path, seed: int, faults: errors.Faults) -> Workload:
    """The 30 days in *folder*; what is drawn follows from *seed*.  UnusableInput names the line."""
    flavors, bins = dict(_pairs(folder / FLAVORS, _flavor)), defaultdict[int, list[int]](list)
    for seconds, number in _pairs(folder / BINS, lambda _line, *words: map(int, words)):
        bins[number].append(seconds)
    known_lifetimes = {f"{kind}{number}" for kind in "UC" for number in bins}
    read = [
        list(_batches(folder, a, ends, flavors.keys(), known_lifetimes, faults))
        for a, ends in PARTS
    ]
    known = (batch for _at, batch in itertools.chain(*read[1:]))
    lifetimes = _Lifetimes(bins, known, random.Random(seed))
    found: list[Arrival] = []
    for at, batch in itertools.chain(*read):
        of_flavor: dict[str, list[str]] = {}
        for letter, text in batch:
            of_flavor.setdefault(letter, []).append(text)
        for letter, texts in of_flavor.items():
            several = tuple(lifetimes.seconds(letter, text) for text in texts)
            found.append(Arrival(f"request {len(found) + 1}", at, flavors[letter], several))
    return Workload(SOURCE, found, faults.notes)


def _flavor(line: int, size: str, letter: str) -> tuple[str, objects.Flavor]:
    cores, gib = size.split(",")
    return letter, a_flavor(f"{cores}/{gib}", line, int(cores), float(gib) * 1024)


def _pairs(path: Path, parse: Callable[..., Iterable[Any]]) -> Iterator[tuple[Any, Any]]:
    """The lines of a map, parsed from number and words; UnusableInput names the line."""
    line = 1
    try:
        for line, text in enumerate(path.read_text(encoding="ascii").splitlines(), 1):
            first, second = parse(line, *text.split())
            yield first, second
    except (OSError, TypeError, ValueError) as error:
        raise errors.unusable(path, line, error) from error


def _batches(
    folder: Path,
    arrivals: str,
    ends: str | None,
    flavors: Set[str],
    lifetimes: Set[str],
    faults: errors.Faults,
) -> Iterator[tuple[int, Batch]]:
    """Second, and flavor and lifetime (a text; empty: not known) of each server of a tenant."""
    path = folder / arrivals
    others = itertools.repeat("") if ends is None else _lines(folder / ends, faults)
    last = -1
    for line, (text, other) in enumerate(zip(_lines(path, faults), others, strict=False), 1):
        at, _blank, tokens = text.partition(" ")
        letters = tokens.split(",")
        known = other.partition(" ")[2].split(",") if ends else [*letters]
        bins = {each for letter, each in zip(letters, known, strict=False) if letter not in "|"}
        reason = ""
        if not at.isdecimal() or len(at) > 9 or len(letters) != len(known):
            reason = f"not of the form 'seconds letters', or not as long as its line in {ends}"
        elif strange := sorted(set(letters) - flavors - {"|", ""}):
            reason = f"no flavor {', '.join(strange)!r:.40} in {FLAVORS}"
        elif ends and (strange := sorted(bins - lifetimes)):
            reason = f"no lifetime {', '.join(strange)!r:.40} in {BINS}, by its line in {ends}"
        elif int(at) < last:
            reason = f"the clock went back: {at} after {last}"
        if reason:
            faults.add(path, line, reason)
            continue
        last, unknown = int(at), itertools.repeat("")
        yield from ((last, batch) for batch in _of_tenants(letters, known if ends else unknown))


def _of_tenants(letters: Sequence[str], known: Iterable[str]) -> Iterator[Batch]:
    pairs = zip(letters, known, strict=False)
    for is_between, several in itertools.groupby(pairs, lambda each: each[0] == "|"):
        batch = [each for each in several if each[0]]
        if batch and not is_between:
            yield batch


def _lines(path: Path, faults: errors.Faults) -> Iterator[str]:
    number = 0
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            for number, line in enumerate(file, 1):  # noqa: B007
                yield line.rstrip("\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        faults.add(path, number + 1, error)
