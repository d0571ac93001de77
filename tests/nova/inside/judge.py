"""Nova's own verdict on what the scheduler answered: its host states, filters and weighers.

The host states are read once and then consumed as Nova's scheduler does it, pick by pick of the
scheduler under test, until the hosts report or the judge starts again.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import nova.conf
from nova import exception, objects
from nova.scheduler import host_manager
from nova.scheduler.manager import SchedulerManager

from tests.nova.inside import calls, contexts, fleet
from tests.nova.inside.demands import a_request

#: Weights are sums of floats; Nova's and ours may add them up in another order.
TOLERANCE = 1e-6
#: What consuming changes on a host state.
CONSUMED = (
    *("free_ram_mb", "free_disk_mb", "vcpus_used", "num_instances", "num_io_ops"),
    *("numa_topology", "pci_stats", "limits", "instances", "updated"),
)


class Court:
    """The host states as Nova sees them after all picks so far."""

    def __init__(self) -> None:
        self.manager: Any = host_manager.HostManager()
        self.states = list(self.manager.get_host_states_by_uuids(contexts.admin(), None, None))
        #: The instances picked since then whose rows do not exist: host, uuid, flavor.
        self.unborn: list[tuple[str, str, Mapping[str, Any]]] = []
        #: Those whose rows say that their hosts are about to build them.
        self.building: list[str] = []

    def note(self, hosts: Sequence[str], demand: Mapping[str, Any]) -> None:
        """Remember what was picked; members of a group get their rows at once."""
        picked = [
            (host, uuid, demand.get("flavor", {}))
            for host, uuid in zip(hosts, demand["uuids"], strict=True)
        ]
        self.unborn += picked
        if "group" in demand:
            self.bear()

    def bear(self) -> None:
        """Write the rows of all instances that were picked."""
        for host, uuid, flavor in self.unborn:
            fleet.add_instance(host, uuid, flavor, vm_state="building")
            self.building.append(uuid)
        self.unborn.clear()

    def sorted_hosts(self, hosts: Sequence[Any], request: Any, index: int) -> list[Any]:
        """Nova's filters and weighers: what passes, with weights, best first."""
        for each in hosts:
            each.allocation_candidates = [{"mappings": {}}]
        passed = list(self.manager.get_filtered_hosts(hosts, request, index))
        if not passed:
            return []
        weighed: list[Any] = self.manager.get_weighed_hosts(passed, request)
        return weighed

    def hosts_for(self, request: Any) -> list[Any]:
        """The states of the cells that the request may go to."""
        wanted = request.requested_destination
        if wanted and "cell" in wanted and wanted.cell and not wanted.allow_cross_cell_move:
            return [each for each in self.states if each.cell_uuid == wanted.cell.uuid]
        enabled = {each.uuid for each in self.manager.enabled_cells}
        return [each for each in self.states if each.cell_uuid in enabled]


_court: list[Court] = []


def start() -> int:
    """Read all hosts anew; returns how many there are."""
    _court[:] = [Court()]
    return len(_court[0].states)


def judged(
    demand: Mapping[str, Any], returns_objects: bool = True, alternates: bool = False
) -> dict[str, Any]:
    """Ask the scheduler, and Nova for its verdict on the answer.

    Returns ``hosts`` (those chosen, null for a refusal) and ``complaints``, empty if Nova agrees.
    """
    (court,) = _court
    request = a_request(demand)
    asked = request.obj_clone()
    try:
        answered = calls.ask(asked, demand["uuids"], returns_objects, alternates)
    except exception.NoValidHost as refusal:
        return {"hosts": None, "complaints": list(on_refusal(court, request, demand, refusal))}
    firsts = [each[0] if returns_objects else each for each in answered]
    review = Review(court, request, demand["uuids"])
    complaints = list(review.of_choices(firsts))
    if returns_objects:
        complaints += review.of_alternates(answered, alternates)
    hosts = [each["host"] for each in firsts]
    court.note(hosts, demand)
    return {"hosts": hosts, "complaints": complaints}


class Review:
    """One answer, gone through as Nova's scheduler would have taken the decision."""

    def __init__(self, court: Court, request: Any, uuids: Sequence[str]) -> None:
        self.court = court
        self.request = request
        self.uuids = uuids
        self.left: list[Any] = court.hosts_for(request)
        self.weighed: list[Any] = []
        self.chosen: list[Any] = []

    def of_choices(self, answered: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Every host must pass Nova's filters at its turn, and be the best for its weighers."""
        if len(answered) != len(self.uuids):
            yield f"{len(answered)} hosts for {len(self.uuids)} instances"
        for index, (uuid, selection) in enumerate(zip(self.uuids, answered, strict=False)):
            self.request.instance_uuid = uuid
            self.weighed = self.court.sorted_hosts(self.left, self.request, index)
            weights = {each.obj.host: each.weight for each in self.weighed}
            name = selection["host"]
            if name not in weights:
                yield f"instance {index}: Nova's filters refuse {name}, pass {sorted(weights)}"
                return
            best = max(weights.values())
            if weights[name] < best - TOLERANCE:
                yield f"instance {index}: Nova weighs {name} {weights[name]}, others {best}"
            state = next(each.obj for each in self.weighed if each.obj.host == name)
            yield from facts(index, state, selection)
            self.chosen.append(state)
            self.left = [each.obj for each in self.weighed]
            SchedulerManager._consume_selected_host(state, self.request, instance_uuid=uuid)

    def of_alternates(self, answered: Sequence[Any], wanted: bool) -> Iterator[str]:
        """As many as configured and possible, of the chosen host's cell, the best first."""
        count = nova.conf.CONF.scheduler.max_attempts - 1 if wanted else 0
        if len(self.uuids) > 1 and count:
            last = len(self.uuids) - 1
            self.weighed = self.court.sorted_hosts(self.left, self.request, last)
        for state, (_, *others) in zip(self.chosen, answered, strict=False):
            weights = {
                each.obj.host: each.weight
                for each in self.weighed
                if each.obj.cell_uuid == state.cell_uuid and each.obj not in self.chosen
            }
            best = sorted(weights.values(), reverse=True)[:count]
            names = [each["host"] for each in others]
            if not set(names) <= weights.keys() or len(set(names)) != len(best):
                yield f"{names} as alternates of {state.host}, Nova has {sorted(weights)}"
                continue
            given = [weights[name] for name in names]
            if any(abs(one - other) > TOLERANCE for one, other in zip(given, best, strict=True)):
                yield f"alternates of {state.host} weigh {given}, the best {best}"


def facts(index: int, state: Any, selection: Mapping[str, Any]) -> Iterator[str]:
    """What a selection says of its host is what Nova knows of it."""
    known = {"node": state.nodename, "cell": state.cell_uuid, "node_uuid": state.uuid}
    known["zone"] = objects.Selection.from_host_state(state).availability_zone
    if "cell" not in selection:
        known = {"nodename": state.nodename}
    wrong = {name: selection[name] for name in known if selection[name] != known[name]}
    if wrong:
        yield f"instance {index}: {wrong} on {state.host}, Nova knows {known}"


def on_refusal(
    court: Court, request: Any, demand: Mapping[str, Any], refusal: Exception
) -> Iterator[str]:
    """Nova must not find a host for every instance either; leaves the states as they were."""
    if not str(refusal).startswith("No valid host was found. "):
        yield f"refused with {refusal!r}"
    before = [(each, {name: held(each, name) for name in CONSUMED}) for each in court.states]
    left = court.hosts_for(request)
    found = []
    for index, uuid in enumerate(demand["uuids"]):
        request.instance_uuid = uuid
        left = [each.obj for each in court.sorted_hosts(left, request, index)]
        if not left:
            break
        found.append(left[0].host)
        SchedulerManager._consume_selected_host(left[0], request, instance_uuid=uuid)
    for state, values in before:
        vars(state).update(values)
    if len(found) == len(demand["uuids"]):
        yield f"refused, but Nova finds {found}"


def held(state: Any, name: str) -> Any:
    """The value of an attribute, apart from what consuming changes in place."""
    value = getattr(state, name)
    if name == "instances":
        return dict(value)
    return copy.deepcopy(value) if name == "pci_stats" else value


def report() -> None:
    """Let every host count what it was given, in its row, and run it; start again."""
    (court,) = _court
    court.bear()
    for state in court.states:
        columns = {
            "vcpus_used": state.vcpus_used,
            "memory_mb_used": state.total_usable_ram_mb - state.free_ram_mb,
            "local_gb_used": state.total_usable_disk_gb - state.free_disk_mb // 1024,
            "free_ram_mb": state.free_ram_mb,
            "free_disk_gb": state.free_disk_mb // 1024,
            "disk_available_least": state.free_disk_mb // 1024,
            "running_vms": state.num_instances,
            "stats": {"num_instances": str(state.num_instances), "io_workload": "0"},
        }
        if state.numa_topology:
            columns["numa_topology"] = state.numa_topology._to_json()
        if state.pci_stats:
            columns["pci_device_pools"] = state.pci_stats.to_device_pools_obj()
        fleet.change_host(state.host, columns)
    for uuid in court.building:
        fleet.start_instance(uuid)
    start()
