"""Modules of Nova that code written for it imports, where there is no Nova.

``table`` lists what is provided and what it stands for, ``importing`` makes Python find it.
"""

from scheduler.nova_compat.importing import install

__all__ = ["install"]
