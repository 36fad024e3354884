"""Run the whole stack without Docker: scorers, Collector, Prometheus, Alertmanager and demo agents, as one."""
