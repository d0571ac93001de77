"""Legacy request dicts, and the record of attempts in filter properties.

Reference page conductor, sections 3.1 to 3.3, and page scheduling, section 9.1.
"""

import copy
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_log import log as logging
from oslo_serialization import jsonutils

from conductor_stub.records import limits_of
from scheduler import errors, objects

LOG = logging.getLogger(__name__)

FLAVOR_PREFIX = "instance_type_"
FLAVOR_COLUMNS = (
    *("id", "name", "memory_mb", "vcpus", "root_gb", "ephemeral_gb"),
    *("flavorid", "swap", "rxtx_factor", "vcpu_weight"),
)
NUMA_EXTRA_SPECS = ("hw:numa_cpus.", "hw:numa_mem.")


def legacy_spec(
    image: dict[str, Any] | None,
    instances: Sequence[objects.Instance],
    request_spec: objects.RequestSpec | dict[str, Any] | None,
) -> dict[str, Any]:
    """The dict form of *request_spec*, or of a request made from image and instances."""
    if request_spec is None:
        return build_request_spec(image, instances)
    if isinstance(request_spec, dict):  # what a compute was given at 4.19 comes back like this
        return request_spec
    return legacy_spec_of(request_spec)


def legacy_spec_of(request_spec: objects.RequestSpec) -> dict[str, Any]:
    """The dict form of *request_spec*, in plain values."""
    legacy: dict[str, Any] = plain(request_spec.to_legacy_request_spec_dict())
    return legacy


def build_request_spec(
    image: dict[str, Any] | None, instances: Sequence[objects.Instance]
) -> dict[str, Any]:
    """A request for as many servers as *instances*, with the properties of the first one."""
    first = instances[0]
    properties = plain(first)
    properties["system_metadata"] = {
        **properties.get("system_metadata", {}),
        **flavor_copies(first.flavor),
    }
    return {
        "image": plain(image or {}),
        "instance_properties": properties,
        "instance_type": plain(first.flavor),
        "num_instances": len(instances),
    }


def flavor_copies(flavor: objects.Flavor | None) -> dict[str, Any]:
    """The flavor as system metadata of old releases; ends at the first unset column."""
    copies: dict[str, Any] = {}
    if flavor is None:
        return copies
    for column in FLAVOR_COLUMNS:
        if not flavor.is_set(column):
            return copies
        copies[FLAVOR_PREFIX + column] = getattr(flavor, column)
    for key, value in flavor.extra_specs.items():
        if key.startswith(NUMA_EXTRA_SPECS):
            copies[f"{FLAVOR_PREFIX}extra_{key}"] = value
    return copies


def plain(value: Any) -> Any:
    """*value* as plain JSON values: objects become dicts of their fields, datetimes text."""
    return jsonutils.to_primitive(objects.to_plain(value))


def attempts(properties: Mapping[str, Any]) -> int:
    """The number of attempts, the present one included; 1 without any record."""
    return int((properties.get("retry") or {}).get("num_attempts", 1))


def populate_retry(
    properties: Mapping[str, Any], instance_uuid: str, max_attempts: int
) -> dict[str, Any]:
    """The properties with one attempt more on their ``retry`` record.

    Nothing is recorded where a failed build is final.  Raises MaxRetriesExceeded when this
    attempt is one more than *max_attempts*.
    """
    counted = copy.deepcopy(dict(properties))
    forced = [len(counted.get(key) or ()) == 1 for key in ("force_hosts", "force_nodes")]
    if max_attempts == 1 or any(forced):
        LOG.debug("A failed build of instance %s is not retried", instance_uuid)
        return counted
    retry = counted["retry"] = counted.get("retry") or {"num_attempts": 0, "hosts": []}
    retry["num_attempts"] = retry.get("num_attempts", 0) + 1
    if retry.get("exc") and retry.get("hosts"):
        LOG.error(
            "Error from last host: %s (node %s): %s",
            *retry["hosts"][-1],
            "".join(retry["exc"]),
            extra={"instance_uuid": instance_uuid},
        )
    reason = retry.pop("exc_reason", None)
    if retry["num_attempts"] > max_attempts:
        raise errors.MaxRetriesExceeded(
            reason=f"Exceeded max scheduling attempts {max_attempts} for instance "
            f"{instance_uuid}. Last exception: {reason}"
        )
    return counted


def populate_filter_properties(
    properties: Mapping[str, Any], chosen: objects.Selection
) -> dict[str, Any]:
    """The properties of one instance on the host *chosen*; forced hosts carry no limits."""
    local = copy.deepcopy(dict(properties))
    if local.get("retry"):
        local["retry"].setdefault("hosts", []).append([chosen.service_host, chosen.nodename])
    if not local.get("force_hosts"):
        local["limits"] = limits_of(chosen)
    return local


def with_failure(properties: Mapping[str, Any], error: BaseException, reason: str) -> Any:
    """The properties, with a ``retry`` record, that tell why their host could not do it."""
    found = copy.deepcopy(dict(properties))
    found["retry"]["exc"] = traceback.format_exception(error)
    found["retry"]["exc_reason"] = reason
    return found
