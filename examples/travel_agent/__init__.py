"""A small travel agent with failing tools, instrumented by a real library and scored by otel_evals."""
