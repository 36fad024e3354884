"""Build the Grafana dashboards as code; ``python -m dashboards`` writes their JSON."""
