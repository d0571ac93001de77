"""Filters and weighers of sites in ``explain``: their sentences, and failures with the host."""

import json
import math

import pytest

from scheduler import errors
from scheduler.cli.command import dumped
from scheduler.filters import BaseHostFilter, HostFilter, Reason, Refused
from scheduler.manager import SchedulerManager
from scheduler.weights import BaseHostWeigher
from tests.builders import a_request
from tests.unit.drivers.scheduling import a_driver
from tests.unit.evaluation.builders import a_fleet
from tests.unit.explain.asking import UUID, Context, printed, told

BUSY = Reason("busy.hosts", "Too busy.")


class Full(BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return (
            Refused("its rack is full") if host_state.host == "h1" else Refused("its rack is hot")
        )


class Vague(BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return False


class Chatty(BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return Refused(f"{host_state.host} {'is full' * 100}")


class Broken(BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return host_state.host != "h3" or host_state.free_ram


class BrokenHavana(BaseHostFilter):
    def host_passes(self, host_state, filter_properties):
        return host_state.host == "h1" or filter_properties["no_such_key"]


class BrokenColumns(HostFilter):
    reasons = (BUSY,)

    def conditions(self, hosts, request):
        if (hosts.free_ram_mb == 3000).any():
            raise ZeroDivisionError
        yield BUSY, hosts.everything(True)


class BrokenTogether(BaseHostFilter):
    def filter_all(self, filter_obj_list, spec_obj):
        if len(filter_obj_list) > 2:
            raise RuntimeError("too many")
        return filter_obj_list


class Refusing(BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        raise errors.InvalidRequest(field="hint", reason="no such rack")


class BrokenLikeNova(BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        raise errors.NovaException("no such rack")


class Torn(BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return Refused("its rack\nis torn")


class BrokenInLines(BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        raise ValueError("one\ntwo")


class BrokenWeigher(BaseHostWeigher):
    def _weigh_object(self, host_state, weight_properties):
        return 1.0 / (host_state.host != "h4")


class Wordless(BaseHostWeigher):
    def _weigh_object(self, host_state, weight_properties):
        return None


class BrokenMultiplier(BaseHostWeigher):
    def _weigh_object(self, host_state, weight_properties):
        return 1.0

    def weight_multiplier(self, host_state):
        return {"h1": 1.0}[host_state.host]


class Boundless(BaseHostWeigher):
    def _weigh_object(self, host_state, weight_properties):
        return {"h1": math.inf, "h2": math.nan}.get(host_state.host, 1.0)


class BrokenLimits(HostFilter):
    reasons = (BUSY,)

    def conditions(self, hosts, request):
        yield BUSY, hosts.free_ram_mb == 2000

    def limits(self, host_state, request):
        raise LookupError(host_state.host)


def a_manager(cls, hosts=5):
    path, is_filter = f"{__name__}.{cls.__name__}", issubclass(cls, BaseHostFilter)
    driver = a_driver(
        a_fleet(*(1000 * number for number in range(1, hosts + 1))),
        available_filters=[path] if is_filter else [],
        enabled_filters=[cls.__name__] if is_filter else [],
        weight_classes=[] if is_filter else [path],
    )
    return SchedulerManager(driver.conf, driver)


def ask(manager):
    return manager.select_destinations(Context, spec_obj=a_request(), instance_uuids=[UUID])


CAUSE = "all 5 hosts: 4 because its rack is hot, 1 because its rack is full."


@pytest.mark.parametrize(
    ("cls", "removed", "cause"),
    [
        (Full, {"its rack is full": 1, "its rack is hot": 4}, CAUSE),
        (Torn, {r"its rack\nis torn": 5}, r"all 5 hosts: its rack\nis torn."),
        (Vague, {"unspecified": 5}, "all 5 hosts: does not pass."),
    ],
)
def test_sentences_of_a_filter_are_shown(cls, removed, cause):
    manager = a_manager(cls)
    with pytest.raises(errors.NoValidHost):
        ask(manager)
    [record] = told(manager, "req-7")
    assert record["filters"][0]["removed"] == removed
    assert record["cause"].endswith(cause)


def test_sentences_are_short_and_few():
    manager = a_manager(Chatty, hosts=40)
    with pytest.raises(errors.NoValidHost):
        ask(manager)
    removed = told(manager, "req-7")[0]["filters"][0]["removed"]
    assert (len(removed), removed["unspecified"], max(map(len, removed))) == (17, 24, 200)


#: What the caller is told, and the text of the error, which is for the log alone.
FAILURES = {
    Broken: (" on h3: AttributeError", "'HostState' object has no attribute 'free_ram'"),
    BrokenHavana: (" on h2: KeyError", "'no_such_key'"),
    BrokenColumns: (": ZeroDivisionError", ""),
    BrokenWeigher: (" on h4: ZeroDivisionError", "float division by zero"),
    BrokenMultiplier: (" on h2: KeyError", "'h2'"),
    Wordless: (
        *(" on h1: TypeError",),
        "float() argument must be a string or a real number, not 'NoneType'",
    ),
    BrokenLimits: (" on h2: LookupError", "h2"),
    BrokenLikeNova: (" on h1: NovaException", "no such rack"),
    BrokenInLines: (" on h1: ValueError", r"one\ntwo"),
    BrokenTogether: (": RuntimeError", "too many"),
}


@pytest.mark.parametrize("cls", FAILURES)
def test_what_raises_is_named_with_its_host(cls, caplog):
    where, text = FAILURES[cls]
    in_fault = f"{cls.__name__} failed{where}"
    failure = f"{in_fault}: {text}"
    manager = a_manager(cls)
    with pytest.raises(errors.NovaException) as caught:
        ask(manager)
    fault = caught.value.kwargs["fault_id"]
    assert str(caught.value) == f"Internal fault {fault} ({in_fault}); the scheduler's log has more"
    assert told(manager, "req-7")[0]["cause"] == f"Internal fault {fault}: {failure}"
    assert failure in caplog.text
    assert "Traceback" in caplog.text


def test_a_weight_that_is_no_number_is_shown_and_is_null_in_json():
    manager = a_manager(Boundless)
    ask(manager)
    assert "inf" in printed(manager, "req-7")
    written = dumped(told(manager, "req-7"), "json")
    [decision] = json.loads(written, parse_constant=pytest.fail)
    assert None in [host["weighers"][0]["raw"] for host in decision["top"]]


def test_an_error_of_nova_that_a_filter_raises_stays_what_it_is():
    with pytest.raises(errors.InvalidRequest, match="no such rack"):
        ask(a_manager(Refusing))
