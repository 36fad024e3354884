"""Score spans as a service: OTLP in from any language, nothing acknowledged is lost, an API and a page to look at."""
