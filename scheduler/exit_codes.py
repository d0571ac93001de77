"""Exit statuses (page service, section 3; manual pages).  None is given another meaning."""

from typing import Final

OK: Final = 0
FAILURE: Final = 1  # the work failed
USAGE: Final = 2  # the command line was not understood
CONFIGURATION: Final = FAILURE

# broker check
BROKER_UNREACHABLE: Final = 10  # no connection
BROKER_TLS: Final = 11  # no TLS connection, or one is wanted and not configured
BROKER_LOGIN: Final = 12  # user or password are refused
BROKER_VHOST: Final = 13  # no such virtual host, or the user may not use it
BROKER_QUEUES: Final = 14  # an exchange or queue is missing, different, or without a consumer
# 15 was a management API that did not answer

# config validate
CONFIG_FILE: Final = 20  # a file is missing or cannot be parsed
CONFIG_OPTION: Final = 21  # a value cannot be used, or nobody knows the option
CONFIG_PLUGIN: Final = 22  # a driver, host manager, filter, weigher or the like cannot be loaded
CONFIG_DATABASE: Final = 23  # a database cannot be used, or hosts cannot be claimed
CONFIG_BROKER: Final = 24  # with --broker: the message broker cannot be used
CONFIG_SURROUNDINGS: Final = 25  # a file, directory or address of an option cannot be used

# upgrade check, which ends with the library's codes
UPGRADE_ERROR: Final = 255  # the check itself failed
