"""A run in other shapes, derived from the run directory alone."""
