"""Build spans and steps for tests."""
