"""(metadata of the host's aggregates, zone asked for) -> in it or not."""

from __future__ import annotations

import pytest

from scheduler.filters.availability_zone_filter import AvailabilityZoneFilter
from tests.builders import a_conf, a_host, a_request, verdict

OTHER = ["availability_zone.other"]


@pytest.mark.parametrize(
    ("aggregates", "zone", "reasons"),
    [
        pytest.param([], None, [], id="no zone asked for"),
        pytest.param([{"availability_zone": "z1"}], "", [], id="empty zone asked for"),
        pytest.param([], "nova", [], id="default zone, host in none"),
        pytest.param([], "Nova", OTHER, id="the default zone has a case"),
        pytest.param([{"ssd": "yes"}], "nova", [], id="default zone, other metadata"),
        pytest.param([{"availability_zone": "z1"}], "nova", OTHER, id="no longer in the default"),
        pytest.param([{"availability_zone": "z1"}], "z1", [], id="same"),
        pytest.param([{"availability_zone": "z1"}], "Z1", OTHER, id="zones have a case"),
        pytest.param([{"availability_zone": "z1, z2"}], "z2", [], id="one of several"),
        pytest.param([{"availability_zone": "z1, z2"}], "z1, z2", OTHER, id="not a list"),
        pytest.param(
            [{"availability_zone": "z1"}, {"availability_zone": "z2"}], "z2", [], id="second one"
        ),
        pytest.param([{"availability_zone": ""}], "nova", OTHER, id="the zone without a name"),
        pytest.param([], "z1", OTHER, id="host in no zone"),
    ],
)
def test_the_zone_decides(aggregates, zone, reasons):
    host = a_host(aggregates=aggregates)

    found = verdict(AvailabilityZoneFilter(a_conf()), host, a_request(availability_zone=zone))

    assert found == reasons


def test_the_default_zone_is_an_option():
    conf = a_conf()
    conf.set_override("default_availability_zone", "home")
    zones = AvailabilityZoneFilter(conf)

    assert verdict(zones, a_host(), a_request(availability_zone="home")) == []
    assert verdict(zones, a_host(), a_request(availability_zone="nova")) == OTHER
