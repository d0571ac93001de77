"""What operators may ask a running worker, beside its work: see ``methods`` for the list."""
