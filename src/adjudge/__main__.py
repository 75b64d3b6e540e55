"""`python -m adjudge`: the command line, where the console script is not on the path."""

from adjudge.cli.start import run

if __name__ == "__main__":
    run()
