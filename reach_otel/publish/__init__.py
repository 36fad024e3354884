"""Tell the world what the engine said: metrics, live gauges, finished records."""
