"""The message broker from outside: connections, and the exchanges and queues it should have."""
