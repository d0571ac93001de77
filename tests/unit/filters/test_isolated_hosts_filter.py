"""(isolated hosts and images, host and image) -> may run it or not."""

from __future__ import annotations

import pytest

from scheduler import errors, objects
from scheduler.filters.isolated_hosts_filter import IsolatedHostsFilter
from tests.builders import a_conf, a_host, a_request, verdict

NOT_ISOLATED, ISOLATED = ["isolated.host_is_not"], ["isolated.image_is_not"]


def asked(image):
    """A request for the image of this id; for none if it is None, for a nameless one if empty."""
    request = a_request()
    if image is not None:
        request.image = objects.ImageMeta(**({"id": image} if image else {}))
    return request


def options(images, hosts, restricted):
    return a_conf(
        isolated_images=images,
        isolated_hosts=hosts,
        restrict_isolated_hosts_to_isolated_images=restricted,
    )


@pytest.mark.parametrize(
    ("images", "hosts", "restricted", "image", "reasons"),
    [
        pytest.param([], [], True, "i1", [], id="nothing isolated"),
        pytest.param(["i1"], ["h1"], True, "i1", [], id="both"),
        pytest.param(["i1"], ["h2"], True, "i1", NOT_ISOLATED, id="only the image"),
        pytest.param(["i1"], ["h1"], True, "i2", ISOLATED, id="only the host"),
        pytest.param(["i1"], ["h2"], True, "i2", [], id="neither"),
        pytest.param(["i1"], ["h2"], False, "i1", NOT_ISOLATED, id="only the image, open"),
        pytest.param(["i1"], ["h1"], False, "i2", [], id="only the host, open"),
        pytest.param(["i1"], [], True, "i1", NOT_ISOLATED, id="images that can go nowhere"),
        pytest.param([], ["h1"], True, "i1", ISOLATED, id="hosts that run nothing"),
        pytest.param([], ["h1"], False, "i1", [], id="hosts that run anything"),
        pytest.param(["i1"], ["h1"], True, None, ISOLATED, id="no image"),
        pytest.param(["i1"], ["h2"], True, None, [], id="no image, another host"),
        pytest.param(["i1"], ["h1"], True, "", ISOLATED, id="image without id"),
        pytest.param(["i1"], ["H1"], True, "i2", [], id="hosts have a case"),
        pytest.param(["I1"], ["h1"], True, "i1", ISOLATED, id="images have a case"),
    ],
)
def test_isolated_images_and_hosts(images, hosts, restricted, image, reasons):
    isolated = IsolatedHostsFilter(options(images, hosts, restricted))

    assert verdict(isolated, a_host(), asked(image)) == reasons


def test_newton_needs_the_id_of_the_image():
    conf = options(["i1"], ["h1"], restricted=True)
    conf.set_override("semantics", "newton", group="scheduler")

    assert verdict(IsolatedHostsFilter(conf), a_host(), asked(None)) == ISOLATED
    with pytest.raises(errors.InvalidRequest, match="image.id"):
        verdict(IsolatedHostsFilter(conf), a_host(), asked(""))
    conf.set_override("isolated_images", [], group="filter_scheduler")
    assert verdict(IsolatedHostsFilter(conf), a_host(), asked("")) == ISOLATED
