"""The message bus: transport, request context, serializers, endpoints, client, notifications."""
