"""Canonical JSON, content digests, seeds, the environment, the manifest."""
