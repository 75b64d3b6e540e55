"""Pure numbers: arrays in, Estimate out. No files, no records, no protocol; imports nothing but NumPy and SciPy."""
