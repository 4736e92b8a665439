"""One verdict from several judges: the label that most give; the worse one where they are split."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from otel_evals.evaluation import Evaluation

__all__ = ["verdict"]


def verdict(heard: Sequence[tuple[str, Evaluation]]) -> Evaluation:
    """The majority's evaluation, with the agreement among those who gave one.

    Args:
        heard: Juror and evaluation, at least one. Jurors that could not score abstain.

    Returns:
        The middle evaluation (by score, the lower of two) of the largest group with the same label. A tie
        goes to the group with the lower score: a split jury does not acquit. `details` gains `jury` (juror to
        label), and `agreement` (the group's share, 0 to 1). If all abstain, the first one's reason.
    """
    groups: dict[str | None, list[Evaluation]] = defaultdict(list)
    for _, evaluation in heard:
        if evaluation.outcome != "unscorable":
            groups[evaluation.label].append(evaluation)
    if not groups:
        return heard[0][1]
    majority = max(groups.values(), key=lambda group: (len(group), -_mean(group)))
    middle = sorted(majority, key=_score)[(len(majority) - 1) // 2]
    voted = sum(map(len, groups.values()))
    details = {
        **middle.details,
        "jury": {juror: evaluation.label or evaluation.error_type for juror, evaluation in heard},
        "agreement": round(len(majority) / voted, 4),
    }
    return middle.model_copy(update={"details": details})


def _score(evaluation: Evaluation) -> float:
    return evaluation.score or 0.0


def _mean(group: Sequence[Evaluation]) -> float:
    return sum(map(_score, group)) / len(group)
