"""Alembic's scripts: ``env.py`` runs them, ``versions`` holds one file per revision."""
