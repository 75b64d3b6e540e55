"""What a user's package may add to adjudge without touching it."""
