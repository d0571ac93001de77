"""The record of one decision and its renderings."""
