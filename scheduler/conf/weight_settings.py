"""Options whose items are ``name=ratio``.  Reference page scheduling, section 9.6."""

from __future__ import annotations

from collections.abc import Iterable

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def parse(items: Iterable[str], option: str) -> list[tuple[str, float]]:
    """The (name, ratio) pairs of *items*, in order; names keep their blanks.

    Items without a name or with a ratio that is no number are left out, with one warning that
    names *option*.
    """
    pairs, bad = [], []
    for item in items:
        name, _separator, ratio = item.partition("=")
        try:
            value = float(ratio)
        except ValueError:
            name = ""
        if name:
            pairs.append((name, value))
        else:
            bad.append(item)
    if bad:
        LOG.warning("Ignoring the invalid elements of the option %s: %s", option, ", ".join(bad))
    return pairs
