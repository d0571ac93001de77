"""The Nova scheduler as a service of its own."""

__version__ = "0.2.0"
