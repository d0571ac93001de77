"""What the programs' exit statuses mean (reference page service, section 3).

Each is documented in the manual pages; a number is never given another meaning.
"""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILURE: Final = 1
"""The work failed; also what an unusable configuration ends with."""
USAGE: Final = 2
"""The command line was not understood."""
CONFIGURATION: Final = FAILURE

BROKER_UNREACHABLE: Final = 10
"""``broker check``: a message broker cannot be reached."""
BROKER_TLS: Final = 11
"""``broker check``: no TLS connection can be made, or one is wanted and not configured."""
BROKER_LOGIN: Final = 12
"""``broker check``: user or password are refused."""
BROKER_VHOST: Final = 13
"""``broker check``: there is no such virtual host, or the user may not use it."""
BROKER_QUEUES: Final = 14
"""``broker check``: an exchange or queue is missing, different, or without a consumer."""
BROKER_MANAGEMENT: Final = 15
"""``broker check``: the management API that was asked for does not answer."""

CONFIG_FILE: Final = 20
"""``config validate``: a file is missing or cannot be parsed."""
CONFIG_OPTION: Final = 21
"""``config validate``: a value cannot be used, or nobody knows the option."""
CONFIG_PLUGIN: Final = 22
"""``config validate``: a driver, host manager, filter, weigher or the like cannot be loaded."""
CONFIG_DATABASE: Final = 23
"""``config validate``: a database cannot be used, or hosts cannot be claimed."""
CONFIG_BROKER: Final = 24
"""``config validate --broker``: the message broker cannot be used."""
CONFIG_SURROUNDINGS: Final = 25
"""``config validate``: a file, directory or address that an option names cannot be used."""

UPGRADE_WARNING: Final = 1
"""``upgrade check``: something wants a look."""
UPGRADE_FAILURE: Final = 2
"""``upgrade check``: something stops the upgrade."""
UPGRADE_ERROR: Final = 255
"""``upgrade check``: the check itself failed."""
