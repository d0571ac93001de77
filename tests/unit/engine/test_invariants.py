"""What holds for every fleet and request: forced hosts only, ignored ones never."""

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import errors
from tests.builders import a_fleet, a_request
from tests.unit.engine.test_decision import a_decision, place

names = st.lists(st.sampled_from(["h1", "H2", "h3", "h4", "h9"]), max_size=3, unique=True)
fleets = st.lists(
    st.fixed_dictionaries({"free_ram_mb": st.integers(-1024, 4096)}), min_size=1, max_size=5
)


@settings(max_examples=150, deadline=None)
@given(fleets, names, names, st.integers(1, 4), st.integers(0, 2**32), st.integers(1, 4))
def test_forced_hosts_only_and_ignored_never(fleet, forced, ignored, count, seed, subset):
    request = a_request(force_hosts=forced or None, ignore_hosts=ignored or None)
    try:
        chosen = place(
            a_decision(a_fleet(*fleet), seed, host_subset_size=subset), request, count=count
        )
    except errors.NoValidHost:
        return
    assert len(chosen) == count
    assert not {name.lower() for name in ignored} & set(chosen)
    if forced:
        assert set(chosen) <= {name.lower() for name in forced}


@settings(max_examples=100, deadline=None)
@given(fleets, st.integers(1, 3), st.integers(0, 3))
def test_no_alternate_is_a_chosen_host_and_none_comes_twice(fleet, count, wanted):
    decision = a_decision(a_fleet(*fleet))
    try:
        placement = decision.place(a_request(), (), count, wanted)
    except errors.NoValidHost:
        return
    chosen = {state.host for state in placement.hosts}
    for alternates in placement.alternates:
        hosts = [state.host for state in alternates]
        assert len(hosts) == len(set(hosts)) <= wanted
        assert not chosen & set(hosts)
