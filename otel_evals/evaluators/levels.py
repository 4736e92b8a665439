"""Five levels from 0 to 1 in quarters, and how several of them become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

__all__ = ["mean_level"]

Label = TypeVar("Label", bound=str)


def mean_level(labels: Sequence[Label], scores: Mapping[Label, float]) -> Label:
    """The mean of the labels' scores, rounded down to the next label.

    `scores` holds all labels, 0 among their values. At least one label has to be given.
    """
    mean = sum(scores[label] for label in labels) / len(labels)
    return max((label for label in scores if scores[label] <= mean), key=scores.__getitem__)
