"""The configuration file for our scheduler: every option of Nova that the test has changed."""

from __future__ import annotations

import collections
import os
from collections.abc import Iterator
from typing import Any
from unittest import mock

import networks
import nova.conf
import nova.rpc
from nova.scheduler import filters

CONF = nova.conf.CONF
Pairs = list[tuple[str, str]]
NO_PLACEMENT = "http://127.0.0.1:9/placement"

#: What the process around it needs, or the file says otherwise.
_NOT_PASSED_ON = frozenset(
    (
        *("config_dir", "config_file", "concurrency_backend", "control_exchange", "debug"),
        *("default_log_levels", "host", "log_config_append", "log_dir", "log_file"),
        *("periodic_enable", "report_interval", "state_path", "transport_url", "use_stderr"),
    )
)
_GROUPS_NOT_PASSED_ON = frozenset(
    (
        *("api_database", "database", "keystone_authtoken", "metrics_endpoint", "neutron"),
        *("oslo_limit", "oslo_policy", "placement", "placement_database", "service_user", "wsgi"),
    )
)


def text(host: str, folder: str, api_url: str, main_url: str, placement: str) -> str:
    """The file of a scheduler on *host* that claims in *placement*."""
    groups = _changed()
    groups["DEFAULT"] += [
        ("transport_url", "fake:/"),
        ("control_exchange", nova.rpc.TRANSPORT._driver._default_exchange),
        ("host", host),
        ("state_path", folder),
        ("periodic_enable", "false"),
        ("report_interval", "0"),  # heartbeats would fight for SQLite's one write lock
        ("debug", "true"),
    ]
    groups["api_database"] = [("connection", api_url)]
    groups["database"] = [("connection", main_url)]
    groups["placement"] = [
        ("auth_type", "admin_token"),
        ("token", "admin"),
        ("endpoint", placement),
        ("endpoint_override", placement),
    ]
    groups["neutron"] = [("auth_type", "none"), ("endpoint_override", networks.endpoint())]
    groups["scheduler"] += [("claims", "placement"), ("accept_options_without_effect", "true")]
    if placement == NO_PLACEMENT:  # tests without one do not wait for it as requests do
        groups["scheduler"].append(("placement_deadline_seconds", "1"))
    _leave_out_mocked(groups["filter_scheduler"])
    for line in filter(None, os.environ.get("EXTRA_OPTIONS", "").split(";")):
        group, name, value = line.split("/", 2)
        groups[group].append((name, value))
    return "\n".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in pairs)
        for group, pairs in sorted(groups.items())
        if pairs
    )


def _changed() -> dict[str, Pairs]:
    found: dict[str, Pairs] = collections.defaultdict(list)
    found["DEFAULT"] += _pairs(CONF, CONF._opts, _NOT_PASSED_ON)
    for name, group in sorted(CONF._groups.items()):
        if name not in _GROUPS_NOT_PASSED_ON:
            found[name] += _pairs(CONF[name], group._opts, frozenset())
    return found


def _pairs(values: Any, known: Any, left_out: frozenset[str]) -> Iterator[tuple[str, str]]:
    for name, about in sorted(known.items()):
        if name in left_out or not about.keys() & {"override", "default"}:
            continue
        value = getattr(values, name)
        if value is not None:
            for each in _texts(about["opt"], value):
                yield name, each.replace("$", "$$")


def _texts(option: Any, value: Any) -> list[str]:
    if isinstance(value, dict):
        return [",".join(f"{key}:{each}" for key, each in value.items())]
    if option.multi:
        return [str(each) for each in value]
    if isinstance(value, list | tuple):
        return [",".join(map(str, value))]
    return [str(value)]


def _leave_out_mocked(pairs: Pairs) -> None:
    """Leave out the filters whose ``host_passes`` a test has replaced by a mock that says yes."""
    enabled = CONF.filter_scheduler.enabled_filters
    passing = {each.__name__ for each in filters.all_filters() if _always_passes(each)}
    if passing & set(enabled):
        left = ",".join(each for each in enabled if each not in passing)
        pairs[:] = [pair for pair in pairs if pair[0] != "enabled_filters"]
        pairs.append(("enabled_filters", left))


def _always_passes(cls: type) -> bool:
    found = cls.__dict__.get("host_passes")
    is_mock = isinstance(found, mock.NonCallableMock)
    return is_mock and found.side_effect is None and found.return_value is True
