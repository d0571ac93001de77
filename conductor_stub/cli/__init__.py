"""The commands of ``nova-conductor-stub``, for people without an API."""
