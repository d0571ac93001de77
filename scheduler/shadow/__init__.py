"""A scheduler beside the one that answers: it decides the same requests, and compares.

``driver`` decides and claims nothing; ``outcomes`` reads where instances went; ``comparison`` names
the reason of a difference.  ``daemon.shadow`` runs them, and nobody else imports them.
"""
