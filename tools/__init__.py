"""Hold what developers of reach-otel run by hand; nothing here is part of the package."""
