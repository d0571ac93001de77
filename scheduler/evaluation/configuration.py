"""The configuration of a case; what it leaves out has its default."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from scheduler import conf as options
from scheduler import errors
from scheduler.conf import check
from scheduler.evaluation.behaviour import Behaviour
from scheduler.evaluation.cases import Case


class Configuration:
    """One set of options, given anew to every case, as making one takes longer than deciding."""

    def __init__(self) -> None:
        self._conf = cfg.ConfigOpts()
        options.register_all(self._conf)
        self._conf([], default_config_files=[], default_config_dirs=[])
        self._given: list[tuple[str, str | None]] = []

    def of(self, case: Case, behaviour: Behaviour) -> cfg.ConfigOpts:
        """The configuration of *case*, until the next call.

        Raises an error that names the option that cannot be used.
        """
        while self._given:
            name, group = self._given.pop()
            self._conf.clear_default(name, group=group)
        self._give("scheduler", "semantics", behaviour.semantics)
        if "driver" in case.content:
            self._give("scheduler", "driver", case.content["driver"])
        for group, values in case.content.get("config", {}).items():
            for name, value in values.items():
                self._give(group, name, value)
        check.validate(self._conf)
        return self._conf

    def _give(self, group: str, name: str, value: Any) -> None:
        section = None if group == "DEFAULT" else group
        try:
            self._conf.set_default(name, value, group=section)
        except (cfg.Error, ValueError) as error:
            raise errors.ConfigurationError(
                option=f"[{group}] {name}", reason=str(error)
            ) from error
        self._given.append((name, section))
