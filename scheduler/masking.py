"""Text of others, for people: without passwords, also those in the middle of a URL."""

from __future__ import annotations

import re

from oslo_utils import strutils

MASK = "***"
_CREDENTIALS = re.compile(r"(://)[^/\s'\"]*@")


def masked(text: str) -> str:
    """*text* without what stands before the ``@`` of a URL, or after a word like ``password``."""
    return str(_CREDENTIALS.sub(rf"\1{MASK}@", strutils.mask_password(text)))
