"""The protocols; none imports another."""
