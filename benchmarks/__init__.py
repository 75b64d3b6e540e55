"""The speed table: `python -m benchmarks`."""
