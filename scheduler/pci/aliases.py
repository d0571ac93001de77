"""PCI aliases, and the requests that flavors make by them (page numa_pci, 7.3, 10.1, 10.2)."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scheduler import errors, objects
from scheduler.errors import image_refused, refused
from scheduler.objects.enums import PCI_NUMA_POLICIES
from scheduler.pci.devices import DEFAULT_POLICY

OPTION = "[pci] alias"
ALIAS_KEY = "pci_passthrough:alias"
POLICY_KEY = "pci_numa_affinity_policy"
MAX_NAME_LENGTH = 256

_HEX_ID = re.compile(r"[0-9a-fA-F]{4}")
_CHOICES: dict[str, frozenset[str]] = {
    "device_type": frozenset({"type-PCI", "type-PF", "type-VF", "vdpa"}),
    "capability_type": frozenset({"pci"}),
    "numa_policy": frozenset(PCI_NUMA_POLICIES),
    "live_migratable": frozenset({"true", "false"}),
}
_HEX_KEYS = ("vendor_id", "product_id")
_FREE_KEYS = ("resource_class", "traits")


@dataclass(frozen=True, slots=True)
class Alias:
    """The alternatives that one alias name stands for, and how near they must be."""

    specs: tuple[Mapping[str, str], ...]
    policy: str = DEFAULT_POLICY


def parse_aliases(definitions: Iterable[str]) -> dict[str, Alias]:
    """Read the values of the alias option, one JSON object each.

    Definitions of one name are alternatives; they must agree on device type and policy.
    Raises PciInvalidAlias.
    """
    aliases: dict[str, Alias] = {}
    for text in definitions:
        fields = _checked(text)
        name = fields.pop("name").strip()
        policy = fields.pop("numa_policy", DEFAULT_POLICY)
        if "device_type" in fields:
            fields["dev_type"] = fields.pop("device_type")
        earlier = aliases.get(name)
        if earlier is not None:
            _check_alternative(name, earlier, fields, policy)
        specs = () if earlier is None else earlier.specs
        aliases[name] = Alias((*specs, fields), policy)
    return aliases


def requests_of_flavor(
    flavor: objects.Flavor, image: objects.ImageMeta | None, definitions: Iterable[str]
) -> objects.InstancePCIRequests:
    """The requests that the flavor's ``pci_passthrough:alias`` makes, in order.

    *definitions* are the values of the alias option, read only when the flavor needs them.  A
    NUMA affinity policy of flavor or image overrides that of every alias.  Raises one of
    ``errors.REFUSALS``.
    """
    policy, text = _affinity_policy(flavor, image), flavor.extra_specs.get(ALIAS_KEY)
    if text is None:
        return objects.InstancePCIRequests(requests=[])
    aliases = parse_aliases(definitions)
    found = [_request(item, aliases, policy) for item in text.split(",")]
    return objects.InstancePCIRequests(requests=found)


def _affinity_policy(flavor: objects.Flavor, image: objects.ImageMeta | None) -> str | None:
    wish = flavor.extra_specs.get(f"hw:{POLICY_KEY}")
    image_wish = None if image is None else image.properties.hw_pci_numa_affinity_policy
    if wish is not None and wish not in PCI_NUMA_POLICIES:
        raise refused("InvalidPCINUMAAffinity", POLICY_KEY, f"unknown policy {wish!r}")
    if wish and image_wish and wish != image_wish:
        reason = f"{image_wish!r}, but the flavor says {wish!r}"
        raise image_refused("ImagePCINUMAPolicyForbidden", POLICY_KEY, reason)
    return wish or image_wish


def _request(
    item: str, aliases: Mapping[str, Alias], policy: str | None
) -> objects.InstancePCIRequest:
    name, colon, count = item.partition(":")
    name = name.strip()
    if not colon or ":" in count:
        raise refused("InvalidRequest", ALIAS_KEY, f"{item!r} is not 'name:count'")
    alias = aliases.get(name)
    if alias is None:
        raise refused("PciRequestAliasNotDefined", ALIAS_KEY, f"alias {name!r} is not defined")
    try:
        number = int(count)
    except ValueError as exc:
        reason = f"{count!r} is not a number of devices"
        raise refused("InvalidRequest", ALIAS_KEY, reason) from exc
    return objects.InstancePCIRequest(
        count=number,
        spec=[dict(spec) for spec in alias.specs],
        alias_name=name,
        numa_policy=policy or alias.policy,
    )


def _checked(text: str) -> dict[str, str]:
    try:
        fields = json.loads(text)
    except ValueError as exc:
        raise _invalid(f"{text!r} is not JSON: {exc}") from exc
    if not isinstance(fields, dict):
        raise _invalid(f"{text!r} is not a JSON object")
    for key, value in fields.items():
        if not isinstance(value, str) or not _is_valid(key, value):
            raise _invalid(f"{key} = {value!r} in {text}: {_wanted(key)}")
    if "name" not in fields:
        raise _invalid(f"{text} has no name")
    return fields


def _is_valid(key: str, value: str) -> bool:
    if key == "name":
        return 1 <= len(value.strip()) <= MAX_NAME_LENGTH
    if key in _HEX_KEYS:
        return _HEX_ID.fullmatch(value) is not None
    return key in _FREE_KEYS or value in _CHOICES.get(key, ())


def _wanted(key: str) -> str:
    known = ("name", *_HEX_KEYS, *_FREE_KEYS, *_CHOICES)
    if key not in known:
        return f"no such key{errors.did_you_mean(key, known)}"
    if key in _HEX_KEYS:
        return "four hexadecimal digits are needed"
    values = ", ".join(sorted(_CHOICES.get(key, ())))
    return f"one of {values} is needed" if values else "a text is needed"


def _check_alternative(name: str, earlier: Alias, fields: dict[str, Any], policy: str) -> None:
    dev_type = fields.get("dev_type")
    if dev_type is None or dev_type != earlier.specs[0].get("dev_type"):
        raise _invalid(f"the definitions of {name!r} must have one common device_type")
    if policy != earlier.policy:
        raise _invalid(f"the definitions of {name!r} have different values of numa_policy")


def _invalid(reason: str) -> errors.NovaException:
    return errors.REFUSALS["PciInvalidAlias"](field=OPTION, reason=reason)
