"""The plots of the page on a replayed month."""

from xml.etree import ElementTree

from benchmarks import trace
from scheduler.replay.run import Run
from scheduler.replay.virtual_fleet import VirtualFleet
from tests.builders import a_conf


def test_each_plot_that_is_shown_is_a_picture_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(trace, "IMAGES", tmp_path)
    run = Run(VirtualFleet.from_description(a_conf(), "2 × 4 cores/8 GiB"))
    for at in (0, 3600):
        run.go_to(at)
    text = "".join(trace.plots({"spreading": run.result()}))
    pictures = {path.name: ElementTree.parse(path).getroot() for path in tmp_path.iterdir()}
    assert len(pictures) == len(trace.SHOWN)
    for name, root in pictures.items():
        assert name in text
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.find("{*}polyline") is not None
