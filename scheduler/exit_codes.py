"""What the programs' exit statuses mean (reference page service, section 3)."""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILURE: Final = 1
"""The work failed; also what an unusable configuration ends with."""
USAGE: Final = 2
"""The command line was not understood."""
CONFIGURATION: Final = FAILURE
