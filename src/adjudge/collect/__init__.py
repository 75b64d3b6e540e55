"""Runs a system under test over a data set, with provenance on every record."""
