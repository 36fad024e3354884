"""The command line: ``reach-otel``."""
