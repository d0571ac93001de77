"""``[pci]``: devices that flavors ask for by name.  Reference page config, section 5.2."""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup("pci", title="PCI devices", help="Devices that are passed through to servers.")

OPTIONS: list[cfg.Opt] = [
    cfg.MultiStrOpt(
        "alias",
        default=[],
        deprecated_opts=[cfg.DeprecatedOpt("pci_alias", group="DEFAULT")],
        help="What a name in the extra spec `pci_passthrough:alias` of a flavor stands for: a JSON "
        "object with `name` and any of `vendor_id`, `product_id`, `device_type` (type-PCI, "
        "type-PF, type-VF, vdpa) and `numa_policy` (required, legacy, preferred, socket). The same "
        "name again is an alternative. Read by `nova-conductor-stub boot`.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
