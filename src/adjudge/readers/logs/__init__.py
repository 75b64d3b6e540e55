"""Logs that other evaluation tools leave, read without their packages: one format a file."""
