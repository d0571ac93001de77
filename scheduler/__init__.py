"""The Nova scheduler as a service of its own."""

__version__ = "1.0.0"
