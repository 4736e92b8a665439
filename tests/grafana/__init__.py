"""The dashboards, asked of a real Prometheus that a real run has filled."""
