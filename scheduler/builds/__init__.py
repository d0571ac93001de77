"""Builds that the scheduler itself tells hosts to make, as it did until Icehouse."""
