"""Seeded conversations of tool-using agents as real OpenTelemetry spans: what `otel-evals demo` scores.

`planner.plan_sessions` decides everything in advance, so the truth about each session is known without any
judge; `player.play` lets the plan happen on a tracer, faster than life.
"""
