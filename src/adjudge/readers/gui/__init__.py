"""Recorded GUI episodes, predictions and grounding records: one format a file, all read into the structs of `model`."""
