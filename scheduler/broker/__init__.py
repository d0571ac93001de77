"""A look at the message broker from outside: can it be used, and is what we need on it."""
