"""What a sampling rate is, checked in one place for every way a rate can come in."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, Field

__all__ = ["Rate", "check_rate"]


def check_rate(value: float) -> float:
    """A sampling rate: a finite number from 0 (judge none) to 1 (judge all).

    Raises:
        ValueError: naming the value and the bounds.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{repr(value)[:80]} is no rate: give a number from 0 (judge none) to 1 (judge all)")
    return float(value)


Rate = Annotated[float, Field(strict=False), AfterValidator(check_rate)]
"""A rate in a pydantic model; text that is a number, as in environment variables, is read as one."""
