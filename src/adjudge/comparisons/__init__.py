"""Comparing runs: the comparability guard, paired tests by data type, and the four verdicts."""
