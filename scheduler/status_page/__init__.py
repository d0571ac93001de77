"""The status page: what it shows, as JSON, and the files that show it.  It changes nothing."""
