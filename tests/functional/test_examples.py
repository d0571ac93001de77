"""The examples of the documentation, in the daemon, on a real broker."""

import pytest

from tests import console
from tests.pages import WRITE_A_FILTER, environment


@pytest.mark.timeout(300)
def test_the_filter_of_the_page_from_copy_to_service(transport_url, tmp_path):
    """Run as it stands, but for the broker's address; the daemons end with the shell."""
    shown = console.commands(WRITE_A_FILTER, "from copy to chosen")
    address = "rabbit://guest:guest@localhost:5672/"
    here = [console.Command(each.text.replace(address, transport_url), "") for each in shown]
    ending = console.Command("trap 'kill $(jobs -p); wait' EXIT", "")
    variables = {**environment(), "COLUMNS": "110"}
    _ended, *printed = console.run([ending, *here], tmp_path, variables, 250)
    for command, text in zip(shown, printed, strict=True):
        assert console.agree(command.printed, text), f"{command.text}\nprints:\n{text}"
    assert '"selected": [["h2", "n2"], ["h3", "n3"]]' in "".join(printed)
