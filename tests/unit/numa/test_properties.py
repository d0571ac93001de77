"""What holds for every host and guest: a fit takes what is free, nothing is given out twice."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import errors, numa, objects, pci
from scheduler.numa import GuestCell, GuestTopology, HostCell, HostTopology, Pages
from scheduler.pci import Pools

BOTH = st.sampled_from([numa.CURRENT, numa.NEWTON])
SIZES = (4, 2048, 1048576)
GIB_KB = 1048576


def asking(guest, semantics, limits=None, requests=()):
    return numa.Wish(guest, requests, limits, numa.Rules(semantics))


@st.composite
def host_cells(draw, number):
    first, count = number * 8, draw(st.sampled_from([2, 4, 8]))
    cpus = list(range(first, first + count))
    siblings = []
    if draw(st.booleans()):
        siblings = [frozenset(cpus[i : i + 2]) for i in range(0, count, 2)]
    pages = []
    for size_kb in draw(st.sets(st.sampled_from(SIZES), max_size=3)):
        total = draw(st.integers(0, 4)) * (GIB_KB // size_kb)
        pages.append(Pages(size_kb, total, draw(st.integers(0, total)), 0))
    return HostCell(
        id=number,
        cpus=frozenset(cpus),
        pcpus=draw(st.sampled_from([None, frozenset(cpus), frozenset(cpus[count // 2 :])])),
        memory_mb=draw(st.sampled_from([1024, 4096])),
        cpu_usage=draw(st.integers(0, 8)),
        memory_usage_mb=draw(st.integers(0, 4096)),
        siblings=tuple(siblings),
        pages=tuple(pages),
        socket=draw(st.sampled_from([None, 0, 1])),
    )


@st.composite
def hosts(draw):
    return HostTopology(tuple(draw(host_cells(n)) for n in range(draw(st.integers(1, 3)))))


@st.composite
def guests(draw):
    policy = draw(st.sampled_from([None, "shared", "dedicated", "mixed"]))
    threads = draw(st.sampled_from([None, "prefer", "isolate", "require"]))
    cells = []
    for number in range(draw(st.integers(1, 2))):
        cpus = set(range(number * 4, number * 4 + draw(st.integers(1, 4))))
        some = set(sorted(cpus)[: draw(st.integers(0, len(cpus)))])
        pinned = {"dedicated": cpus, "mixed": some}.get(policy or "", set())
        cells.append(
            GuestCell(
                id=number,
                floating=frozenset(cpus - pinned),
                dedicated=frozenset(pinned),
                memory_mb=draw(st.sampled_from([256, 1024, 1025])),
                pagesize=draw(st.sampled_from([None, -1, -2, -3, 4, 2048])),
                policy=policy,
                thread_policy=threads if policy in ("dedicated", "mixed") else None,
            )
        )
    isolate = draw(st.sampled_from([None, "isolate"])) if policy in ("dedicated", "mixed") else None
    return GuestTopology(tuple(cells), isolate)


@st.composite
def pool_lists(draw):
    kinds = [
        {"vendor_id": "8086", "product_id": draw(st.sampled_from(["10ed", "1515"]))}
        | {"numa_node": draw(st.sampled_from([None, 0, 1])), "count": draw(st.integers(0, 3))}
        | draw(st.sampled_from([{}, {"dev_type": "type-PF"}, {"physical_network": "p"}]))
        for _ in range(draw(st.integers(0, 4)))
    ]
    return Pools.from_object(map(objects.PciDevicePool.from_dict, kinds))


REQUESTS = st.lists(
    st.builds(
        pci.Request,
        count=st.integers(0, 3),
        specs=st.sampled_from([((("vendor_id", "8086"),),), ((("product_id", "1515"),),)]),
        policy=st.sampled_from(["legacy", "required", "preferred", "socket"]),
    ),
    max_size=2,
).map(tuple)
RATIOS = st.sampled_from([None, numa.Limits(1.0, 1.0), numa.Limits(4.0, 1.5)])


@settings(max_examples=150, deadline=None)
@given(hosts(), guests(), RATIOS, BOTH)
def test_an_accepted_fit_takes_only_what_is_free(host, guest, limits, semantics):
    fitted = asking(guest, semantics, limits).fit(host)
    if fitted is None:
        return
    assert len(fitted.cell_ids) == len(guest)
    before = {cell.id: cell for cell in host.cells}
    for mine, wish in zip(fitted.cells, guest.cells, strict=True):
        theirs = before[mine.id]
        taken = mine.pinned_to | mine.reserved
        assert taken <= theirs.free_pinnable
        assert len(mine.pinned_to) == len(wish.dedicated)
        if wish.pagesize is not None:
            (pages,) = (p for p in theirs.pages if p.size_kb == mine.pagesize)
            assert pages.free_kb - mine.memory_kb >= 0
        if limits is not None and not mine.is_pinned:
            used_mb = theirs.memory_usage_mb + mine.memory_mb
            assert used_mb <= theirs.memory_mb * limits.ram_ratio
            assert theirs.cpu_usage + len(mine.floating) <= len(theirs.cpus) * limits.cpu_ratio


@settings(max_examples=150, deadline=None)
@given(hosts(), guests(), pool_lists(), REQUESTS, BOTH)
def test_devices_that_are_taken_are_those_that_are_missing(host, guest, pools, requests, semantics):
    placement = asking(guest, semantics, None, requests).place(host, pools)
    assert placement.pools is not None
    counts = Counter({pool.position: pool.count for pool in placement.pools.pools})
    counts.update({pool.position: 0 for pool in pools.pools})
    for share in placement.taken:
        counts[share.position] += share.count
    assert counts == {pool.position: pool.count for pool in pools.pools}


@settings(max_examples=100, deadline=None)
@given(hosts(), pool_lists())
def test_the_texts_hold_everything(host, pools):
    assert HostTopology.from_text(host.to_text()) == host
    assert Pools.from_text(pools.to_text()) == pools


@settings(max_examples=100, deadline=None)
@given(guests(), hosts(), BOTH)
def test_guests_travel_as_objects(guest, host, semantics):
    assert GuestTopology.from_object(guest.to_object()) == guest
    fitted = asking(guest, semantics).fit(host)
    if fitted is not None:
        assert GuestTopology.from_object(fitted.to_object()) == fitted


@settings(max_examples=400, deadline=None)
@given(hosts(), guests(), RATIOS, REQUESTS, pool_lists(), BOTH)
def test_what_fits_is_what_a_fit_is_found_for(host, guest, limits, requests, pools, semantics):
    wanted = asking(guest, semantics, limits, requests)
    assert wanted.fits(host, pools) is (wanted.fit(host, pools) is not None)


@settings(max_examples=400, deadline=None)
@given(hosts(), guests(), RATIOS, BOTH)
def test_what_fits_is_consumed_cell_by_cell_until_it_no_longer_fits(host, guest, limits, semantics):
    wanted = asking(guest, semantics, limits)
    for _ in range(20):
        fitted, placement = wanted.fit(host), wanted.place(host)
        if fitted is None:
            assert placement.host == host
            return
        if isinstance(placement.error, errors.HostPagesUnknown):
            return
        assert placement.error is None, placement.error
        mine = {cell.id: cell for cell in fitted.cells}
        for before, after in zip(host.cells, placement.host.cells, strict=True):
            taken = mine.get(before.id)
            if taken is None:
                assert after == before
                continue
            if before.siblings or semantics is numa.CURRENT:  # Newton isolates by siblings alone
                assert taken.pinned_to | taken.reserved <= after.pinned - before.pinned
            assert after.memory_usage_mb == before.memory_usage_mb + taken.memory_mb
            assert after.cpu_usage - before.cpu_usage == semantics.counted_cpus(before, taken)
        host = placement.host
