"""What is told on the notification bus: the senders, and the payloads of both forms."""
