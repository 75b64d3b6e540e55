"""Bytes to values: one format per file, and the extractor of answers from raw text."""
