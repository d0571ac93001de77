"""What explain says of a condition is what the filter says, in numbers."""

from hypothesis import given, settings

from scheduler import errors
from scheduler.engine.evaluation import rejections
from scheduler.explain.measures import DESCRIPTIONS, describe, measured
from scheduler.filters.registry import all_filters
from scheduler.hosts.table import HostTable
from scheduler.testing import a_request
from tests.builders import a_conf, candidates
from tests.world.random_fleets import fleets, requests

REASONS = {reason.code for each in all_filters() for reason in getattr(each, "reasons", ())}

#: All but the one that asks a server.
FILTERS = [
    kind(a_conf())
    for kind in all_filters()
    if hasattr(kind, "conditions") and kind.__name__ != "TrustedFilter"
]


#: Reasons whose texts say all that there is to say.
COMPLETE = {
    *("isolated.host_is_not", "isolated.image_is_not", "retry.tried", "json.no_match"),
    *("trusted.other", "numa.threads", "exact_core.unknown", "same_host.absent", "type.other"),
}


def test_every_other_reason_can_be_put_into_numbers_or_words():
    none, request = candidates(HostTable()), a_request()
    codes = [(each, reason.code) for each in FILTERS for reason in each.reasons]
    in_numbers = {code for each, code in codes if measured(each, code, none, request)}
    assert in_numbers | DESCRIPTIONS.keys() == REASONS - COMPLETE


@settings(max_examples=150, deadline=None)
@given(table=fleets(), request=requests())
def test_hosts_removed_lack_something_that_can_be_said_and_the_others_nothing(table, request):
    hosts = candidates(table)
    for each in FILTERS:
        try:
            removed = list(rejections(each, hosts, request))
        except errors.NovaException:
            continue
        passing = hosts.vcpus_total > 0  # others pass, as their size is not known
        for reason, mask in removed:
            passing &= ~mask
            lacking = hosts.take(mask)
            if numbers := measured(each, reason.code, lacking, request):
                assert (numbers.missing > 0).all()
            for state in lacking.states():
                assert all(describe(each, reason.code, state, request)) or reason.code in COMPLETE
        for reason in each.reasons:
            if numbers := measured(each, reason.code, hosts.take(passing), request):
                assert (numbers.missing <= 0).all(), reason.code
