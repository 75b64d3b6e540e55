"""The command line: main.py wires; one file a command."""
