"""The Nova scheduler as a service of its own."""

__version__ = "0.1.0"
