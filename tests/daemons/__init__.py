"""The project's programs as real processes: one (``process``) or all (``deployment``)."""
