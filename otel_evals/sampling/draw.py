"""The one random number of a session: a hash of its id, so every process and every evaluator draws the same.

An evaluator with rate r judges the sessions whose draw is below r; a lower rate therefore picks a subset of a
higher one, and raising a rate keeps every session that was already judged.
"""

from __future__ import annotations

import hashlib

__all__ = ["draw"]

_DOMAIN = b"otel_evals.sampling.draw.v1"
"""Separates this hash from other uses of the session id: draws must not correlate with shard keys."""


def draw(session_id: str, salt: str = "") -> float:
    """A number in [0, 1), uniform over session ids and the same in every process, release and platform.

    Args:
        session_id: the session's id; its generation does not matter, so a resumed session keeps its draw.
        salt: change it to draw a fresh cohort.
    """
    # surrogatepass: ids come from outside, and a lone surrogate in one must not raise.
    salted = salt.encode("utf-8", "surrogatepass")
    named = session_id.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(b"%b\x00%d\x00%b%b" % (_DOMAIN, len(salted), salted, named), usedforsecurity=False)
    # 53 bits: exactly what a float in [0, 1) can hold, so the result can never round up to 1.
    return (int.from_bytes(digest.digest()[:8], "big") >> 11) * 2.0**-53
