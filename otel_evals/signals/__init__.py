"""Deterministic evidence of trouble, read from every session without a model: cheap enough for 100 % of them.

A signal says "look here"; it is not a verdict. Its `detail` counts and names mechanisms but holds no
content, so it may go wherever metrics go.
"""

from otel_evals.signals.reduction import reduce
from otel_evals.signals.scan import SIGNAL_NAMES, Signal, SignalScan, detect, signal_names
from otel_evals.signals.wording import acknowledges_failure, frustration

__all__ = [
    "SIGNAL_NAMES",
    "Signal",
    "SignalScan",
    "acknowledges_failure",
    "detect",
    "frustration",
    "reduce",
    "signal_names",
]
