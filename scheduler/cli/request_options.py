"""A request for servers, made from the command line or from a file."""

from __future__ import annotations

import argparse
import json
import uuid
from pathlib import Path

from oslo_config import cfg

from scheduler import errors, numa, objects, pci, semantics
from scheduler.cli import command
from scheduler.db import flavors
from scheduler.db.database import Database
from scheduler.rpc.messages import ObjectSerializer

_SIZES = (
    ("--flavor-ram", "memory_mb", "MB", "memory"),
    ("--vcpus", "vcpus", "N", "processors"),
    ("--flavor-disk", "root_gb", "GB", "root disk"),
    ("--flavor-ephemeral", "ephemeral_gb", "GB", "ephemeral disk"),
)
_PAIRS = (
    ("--extra-spec", "extra_specs", "extra spec of the flavor"),
    ("--image-property", "image_properties", "property of the image"),
    ("--hint", "hints", "scheduler hint"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe a server that is not there yet."""
    group = parser.add_argument_group("a request that nobody made")
    group.add_argument(
        "--request",
        type=Path,
        metavar="FILE",
        help="a RequestSpec as JSON, in the form of the message bus, alone or as `spec_obj`; "
        "or `request_spec` with `filter_properties`",
    )
    group.add_argument("--flavor", metavar="NAME", help="a flavor of the database")
    for option, dest, metavar, what in _SIZES:
        group.add_argument(
            option, dest=dest, type=command.non_negative, metavar=metavar, help=f"{what} per server"
        )
    for option, dest, what in _PAIRS:
        group.add_argument(
            option,
            dest=dest,
            action="append",
            type=command.key_value,
            metavar="KEY=VALUE",
            default=[],
            help=f"{what}; may be repeated",
        )
    group.add_argument("--az", metavar="ZONE", help="availability zone")
    group.add_argument("--project", metavar="ID", help="project that asks")
    group.add_argument("--count", type=command.positive, metavar="N", help="how many servers")


def is_given(parsed: argparse.Namespace) -> bool:
    """True when there is a request on the command line."""
    sizes = any(getattr(parsed, dest) is not None for _option, dest, _unit, _what in _SIZES)
    return sizes or parsed.request is not None or parsed.flavor is not None


def request_of(
    parsed: argparse.Namespace, conf: cfg.ConfigOpts, database: Database
) -> objects.RequestSpec:
    """The request; InvalidRequest naming what is wrong with it, FlavorNotFound for the flavor."""
    spec = _from_file(parsed.request) if parsed.request else _from_options(parsed, conf, database)
    if parsed.count is not None:
        spec.num_instances = parsed.count
    if not spec.is_set("instance_uuid"):
        spec.instance_uuid = str(uuid.uuid4())
    return spec


def _from_file(path: Path) -> objects.RequestSpec:
    field = f"--request {path}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise errors.InvalidRequest(field=field, reason=str(error)) from error
    if isinstance(content, dict) and isinstance(content.get("args"), dict):
        content = content["args"]
    decoded = ObjectSerializer().deserialize_entity(None, content)
    if isinstance(decoded, dict) and "request_spec" in decoded:
        properties = decoded.get("filter_properties") or {}
        return objects.RequestSpec.from_primitives(decoded["request_spec"], properties)
    found = decoded.get("spec_obj") if isinstance(decoded, dict) else decoded
    if not isinstance(found, objects.RequestSpec):
        raise errors.InvalidRequest(field=field, reason="no RequestSpec in the form of the bus")
    return found


def _from_options(
    parsed: argparse.Namespace, conf: cfg.ConfigOpts, database: Database
) -> objects.RequestSpec:
    flavor = _flavor(parsed, database)
    image = objects.ImageMeta.from_dict({"properties": dict(parsed.image_properties)})
    hints: dict[str, list[str]] = {}
    for name, value in parsed.hints:
        hints.setdefault(name, []).append(value)
    policy = pci.affinity_policy(flavor, image)
    devices = pci.requests_of_flavor(flavor, conf.pci.alias, policy)
    return objects.RequestSpec(
        flavor=flavor,
        image=image,
        num_instances=1,
        scheduler_hints=hints,
        availability_zone=parsed.az,
        project_id=parsed.project,
        numa_topology=numa.constraints(flavor, image, semantics.from_conf(conf).numa),
        pci_requests=objects.InstancePCIRequests(requests=devices),
    )


def _flavor(parsed: argparse.Namespace, database: Database) -> objects.Flavor:
    """The one that is named, or one of the sizes given; the options win over what it says."""
    if parsed.flavor is None:
        flavor = objects.Flavor(
            id=0, name="what-if", flavorid="what-if", memory_mb=0, vcpus=1, root_gb=0,
            ephemeral_gb=0, swap=0, extra_specs={},
        )  # fmt: skip
        if parsed.memory_mb is None:
            raise errors.InvalidRequest(field="--flavor-ram", reason="missing, without --flavor")
    else:
        with database.read() as connection:
            flavor = flavors.get(connection, "name", parsed.flavor)
    for _option, dest, _unit, _what in _SIZES:
        if getattr(parsed, dest) is not None:
            setattr(flavor, dest, getattr(parsed, dest))
    flavor.extra_specs = {**flavor.extra_specs, **dict(parsed.extra_specs)}
    return flavor
