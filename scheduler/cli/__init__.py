"""The operator's commands: ``nova-scheduler-manage``."""
