"""Filters of sites in ``explain``: their own sentences, and their failures with the host."""

from typing import Any

import pytest

from scheduler import errors
from scheduler.filters import BaseHostFilter, HostFilter, Reason, Refused
from scheduler.manager import SchedulerManager
from tests.builders import a_request
from tests.unit.drivers.scheduling import a_driver
from tests.unit.evaluation.builders import a_fleet
from tests.unit.explain.asking import told

UUID = "00000000-0000-4000-a000-000000000001"
BUSY = Reason("busy.hosts", "Too busy.")


class Context:
    request_id = "req-7"


class Full(BaseHostFilter):
    def host_passes(self, host_state: Any, spec_obj: Any) -> bool | Refused:
        return (
            Refused("its rack is full") if host_state.host == "h1" else Refused("its rack is hot")
        )


class Vague(BaseHostFilter):
    def host_passes(self, host_state: Any, spec_obj: Any) -> bool | Refused:
        return False


class Chatty(BaseHostFilter):
    def host_passes(self, host_state: Any, spec_obj: Any) -> bool | Refused:
        return Refused(f"{host_state.host} {'is full' * 100}")


class Broken(BaseHostFilter):
    def host_passes(self, host_state: Any, spec_obj: Any) -> bool | Refused:
        return host_state.host != "h3" or host_state.free_ram


class BrokenHavana(BaseHostFilter):
    def host_passes(self, host_state: Any, filter_properties: Any) -> bool:
        return host_state.host == "h1" or filter_properties["no_such_key"]


class BrokenColumns(HostFilter):
    reasons = (BUSY,)

    def conditions(self, hosts: Any, request: Any) -> Any:
        if (hosts.free_ram_mb == 3000).any():
            raise ZeroDivisionError
        yield BUSY, hosts.everything(True)


class BrokenTogether(BaseHostFilter):
    def filter_all(self, filter_obj_list: Any, spec_obj: Any) -> Any:
        if len(filter_obj_list) > 2:
            raise RuntimeError("too many")
        return filter_obj_list


class Refusing(BaseHostFilter):
    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        raise errors.InvalidRequest(field="hint", reason="no such rack")


def a_manager(cls: type, hosts: int = 5) -> SchedulerManager:
    driver = a_driver(
        a_fleet(*(1000 * number for number in range(1, hosts + 1))),
        available_filters=[f"{__name__}.{cls.__name__}"],
        enabled_filters=[cls.__name__],
    )
    return SchedulerManager(driver.conf, driver)


def ask(manager: SchedulerManager) -> Any:
    return manager.select_destinations(Context, spec_obj=a_request(), instance_uuids=[UUID])


@pytest.mark.parametrize(
    ("cls", "removed", "cause"),
    [
        pytest.param(
            Full,
            {"its rack is full": 1, "its rack is hot": 4},
            "Full removed all 5 hosts: 4 because its rack is hot, 1 because its rack is full.",
            id="sentences",
        ),
        pytest.param(Vague, {"unspecified": 5}, "all 5 hosts: does not pass.", id="only no"),
    ],
)
def test_sentences_of_a_filter_are_shown(cls: type, removed: Any, cause: str) -> None:
    manager = a_manager(cls)
    with pytest.raises(errors.NoValidHost):
        ask(manager)
    [record] = told(manager, "req-7")
    assert record["filters"][0]["removed"] == removed
    assert record["cause"].endswith(cause)


def test_sentences_are_short_and_few() -> None:
    manager = a_manager(Chatty, hosts=40)
    with pytest.raises(errors.NoValidHost):
        ask(manager)
    removed = told(manager, "req-7")[0]["filters"][0]["removed"]
    assert (len(removed), removed["unspecified"], max(map(len, removed))) == (17, 24, 200)


@pytest.mark.parametrize(
    ("cls", "failure", "in_fault"),
    [
        pytest.param(
            Broken,
            "Broken failed on h3: AttributeError: 'HostState' object has no attribute 'free_ram'",
            "Broken failed on h3: AttributeError",
            id="one host",
        ),
        pytest.param(
            BrokenHavana,
            "BrokenHavana failed on h2: KeyError: 'no_such_key'",
            "BrokenHavana failed on h2: KeyError",
            id="dict",
        ),
        pytest.param(
            BrokenColumns,
            "BrokenColumns failed on h3: ZeroDivisionError: ",
            "BrokenColumns failed on h3: ZeroDivisionError",
            id="columns",
        ),
        pytest.param(
            BrokenTogether,
            "BrokenTogether failed: RuntimeError: too many",
            "BrokenTogether failed: RuntimeError",
            id="no single host",
        ),
    ],
)
def test_a_filter_that_raises_is_named_with_its_host(
    cls: type, failure: str, in_fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    manager = a_manager(cls)
    with pytest.raises(errors.NovaException) as caught:
        ask(manager)
    fault = caught.value.kwargs["fault_id"]
    assert str(caught.value) == f"Internal fault {fault} ({in_fault}); the scheduler's log has more"
    assert told(manager, "req-7")[0]["cause"] == f"Internal fault {fault}: {failure}"
    assert failure in caplog.text
    assert "Traceback" in caplog.text


def test_an_error_of_nova_that_a_filter_raises_stays_what_it_is() -> None:
    with pytest.raises(errors.InvalidRequest, match="no such rack"):
        ask(a_manager(Refusing))
