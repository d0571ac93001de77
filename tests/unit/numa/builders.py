"""Short ways to write hosts and guests."""

from scheduler import objects
from scheduler.numa import GuestCell, GuestTopology, HostCell, HostTopology, Pages


def cell(number=0, cpus=range(4), **fields):
    """A host cell: four CPUs without siblings, 8 GiB in pages of 4 KiB."""
    fields = {"pcpus": None, "memory_mb": 8192, "pages": (Pages(4, 2097152),), **fields}
    for name in ("pcpus", "pinned"):
        if fields.get(name) is not None:
            fields[name] = frozenset(fields[name])
    if "siblings" in fields:
        fields["siblings"] = tuple(map(frozenset, fields["siblings"]))
    return HostCell(id=number, cpus=frozenset(cpus), **fields)


def host(*cells):
    return HostTopology(cells)


def want(cpus=(0, 1), policy=None, number=0, **fields):
    """A guest cell of 1 GiB; a dedicated one if *policy* says so."""
    pinned = frozenset(cpus) if policy == "dedicated" else frozenset()
    sizes = {"floating": frozenset(cpus) - pinned, "dedicated": pinned, "memory_mb": 1024}
    return GuestCell(id=number, policy=policy, **{**sizes, **fields})


def devices(count, vendor="8086"):
    one = objects.InstancePCIRequest(count=count, spec=[{"vendor_id": vendor}])
    return objects.InstancePCIRequests(requests=[one])


def guest(*cells, **fields):
    return GuestTopology(cells, **fields)
