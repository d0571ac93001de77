"""All that can be asked: the RPC methods of the namespace ``introspection``.

A method is a function of the worker that is asked and of keyword arguments, all plain data; so is
its result.  Whatever it needs of the decision lock is short, and large answers come in pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler.introspection import explaining, identity, state, summary, trial

METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "worker": identity.worker,
    "explain": explaining.explain,
    "state_summary": summary.state_summary,
    "state_hash": state.hash_of_state,
    "state_hosts": state.state_hosts,
    "state_update": state.state_update,
    "state_refresh": state.state_refresh,
    "what_if": trial.what_if,
}
