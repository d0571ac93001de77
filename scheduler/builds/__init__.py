"""Builds that the scheduler itself sends to hosts, as it did until Icehouse."""
