"""Bytes to columns: one format per file, and the JSON extractor."""
