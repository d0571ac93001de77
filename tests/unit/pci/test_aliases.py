"""Aliases of the configuration and what flavors make of them (section 7.3)."""

import json

import pytest

from scheduler import errors, objects
from scheduler.pci import ALIAS_KEY, parse_aliases, requests_of_flavor


def define(**fields):
    return json.dumps({"name": "gpu", "vendor_id": "10de", **fields})


def flavor(**specs):
    named = {ALIAS_KEY if key == "alias" else key: text for key, text in specs.items()}
    return objects.Flavor(extra_specs=named)


@pytest.mark.parametrize(
    "definitions",
    [
        ["not JSON"],
        ["[]"],
        ['{"vendor_id": "10de"}'],
        [define(name="  ")],
        [define(name="x" * 257)],
        [define(vendor_id="0x10")],
        [define(vendor_id=4318)],
        [define(device_type="NIC")],
        [define(numa_policy="near")],
        [define(live_migratable="maybe")],
        [define(device_type="type-VF"), define(device_type="type-VF", numa_policy="required")],
    ],
)
def test_bad_definitions(definitions):
    with pytest.raises(errors.InvalidRequest) as caught:
        parse_aliases(definitions)
    assert type(caught.value).__name__ == "PciInvalidAlias"
    assert "[pci] alias" in str(caught.value)


KEY = "hw:pci_numa_affinity_policy"


@pytest.mark.parametrize(
    ("specs", "of_image", "error", "named"),
    [
        ({"alias": "gpu"}, None, "InvalidRequest", ALIAS_KEY),
        ({"alias": "gpu:1:2"}, None, "InvalidRequest", ALIAS_KEY),
        ({"alias": "gpu:many"}, None, "InvalidRequest", ALIAS_KEY),
        ({"alias": "fpga:1"}, None, "PciRequestAliasNotDefined", ALIAS_KEY),
        ({KEY: "near"}, None, "InvalidPCINUMAAffinity", KEY),
        ({KEY: "legacy"}, "required", "ImagePCINUMAPolicyForbidden", "image.properties.hw_pci"),
    ],
)
def test_bad_wishes_are_named(specs, of_image, error, named):
    with pytest.raises(errors.InvalidRequest, match=named) as caught:
        requests_of_flavor(flavor(**specs), image_with(of_image), [define()])
    assert type(caught.value).__name__ == error


def image_with(policy):
    if policy is None:
        return None
    properties = objects.ImageMetaProps(hw_pci_numa_affinity_policy=policy)
    return objects.ImageMeta(properties=properties)
