"""Spans of our own inside those that oslo.messaging makes of every remote call.

Off unless ``[oslo_messaging_tracing] tracing_enabled`` says otherwise; ``spans`` is the only module
that needs OpenTelemetry, and is imported only then.
"""
