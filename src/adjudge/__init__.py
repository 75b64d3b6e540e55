"""adjudge: verdicts that anyone can check."""
