"""The examples of the documentation, in the daemon, on a real broker."""

import json
import subprocess

import pytest

from tests.pages import WRITE_A_FILTER, commands, environment


@pytest.mark.timeout(300)
def test_the_filter_of_the_page_from_copy_to_service(transport_url, tmp_path):
    """Its commands as they stand, but for the broker's address; the daemons end with the shell."""
    address = "rabbit://guest:guest@localhost:5672/"
    script = commands(WRITE_A_FILTER, "copy", "rows", "decide", "serve")
    assert script.count(address) == 1
    ending = "trap 'kill $(jobs -p); wait' EXIT\n"
    with (tmp_path / "printed").open("w") as printed:
        done = subprocess.run(
            ["bash", "-c", ending + script.replace(address, transport_url)],
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            timeout=250,
            check=False,
        )
    text = (tmp_path / "printed").read_text()
    assert done.returncode == 0, text
    assert "6 passed" in text
    (decided,) = [json.loads(line) for line in text.splitlines() if line.startswith('{"')]
    left = [["h2", "n2"], ["h3", "n3"]]
    assert decided["filters"][-1] == {"name": "CalmHostsFilter", "passed": left}
    assert decided["selected"] == left
    assert text.count("ACTIVE") >= 4
    assert "Filter CalmHostsFilter returned" in text
