"""Text that speaks to the judge, or tries to override instructions, wherever in the session it stands.

A lexical net: it catches plain attempts in several languages and marks the session; it is not the defence.
The judge's own guards (boundary, escaping, canary, quotes checked) do not rely on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson

from otel_evals.sessions.model import Turn
from otel_evals.signals.folding import clip, fold

__all__ = ["addresses_judge", "is_suspect", "suspect_at"]


def addresses_judge(turn: Turn) -> bool:
    """Some text of the turn, of the person, the agent or a tool, addresses the judge."""
    # One long text costs a fraction of many short ones; the separator keeps patterns from reaching across.
    folded = ".\n".join(fold(clip(text)) for text in _texts(turn))
    return suspect_at(folded) is not None


def is_suspect(text: str) -> bool:
    """The text addresses a judge or overrides instructions; of long texts head and tail are read."""
    return suspect_at(fold(clip(text))) is not None


def suspect_at(folded: str) -> int | None:
    """Offset into a folded text at which it does so; None: it does not."""
    for anchor in _ANCHORS if folded.isascii() else _ALL_ANCHORS:
        if anchor in folded:
            found = _injection().search(folded)
            return None if found is None else found.start()
    return None


def _texts(turn: Turn) -> Iterator[str]:
    if turn.user:
        yield turn.user
    if turn.agent:
        yield turn.agent
    yield from turn.interim
    for call in turn.tool_calls:
        for value in (call.result, call.arguments, call.error and call.error.message):
            if value:
                yield value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        text = repr(value)
    return text.replace('\\"', '"').replace("\\n", "\n")


_JUDGE = (
    r"(?:judge|evaluator|grader|evaluation (?:model|system|agent)|reviewing (?:model|ai)"
    r"|llm[- ]as[- ]a?[- ]?judge)"
)
_THING = r"(?:conversation|session|transcript|dialogue?|response|reply|answer|interaction|chat|agent|assistant)"
_BEST = r"(?:perfect|full|maxim|high|excellent|pass|success|1\.0|10|honest_fallback|not_applicable|goal)"

_PATTERNS = (
    # Instructions overridden
    r"(?:ignore|disregard|forget|override)[^.\n]{0,40}"
    r"\b(?:previous|prior|above|earlier|preceding|system|your|all|other)\b[^.\n]{0,30}"
    r"(?:instruction|prompt|rule|direction|rubric|guideline|criteria)",
    r"(?:ignore|disregard|forget|override) (?:the |this |these |your )?(?:rubric|grading|scoring|evaluation)",
    r"ignorier\w*[^.\n]{0,40}(?:anweisung|vorgabe|regel|instruktion)",
    r"ignor(?:e|ez|a|ar|ad|en|are|ate|eer)\b[^.\n]{0,40}"
    r"(?:instruc\w+|istruzioni|instruções|consignes|instructies)",
    r"(?:忽略|无视|無視)[^。\n]{0,20}(?:指令|指示|提示|规则|規則)",
    r"(?:指示|命令)[^。\n]{0,12}無視",
    r"(?:игнорир|забудь)\w*[^.\n]{0,40}инструкци",
    r"지시[^.\n]{0,12}무시",
    r"تجاهل[^.\n]{0,40}التعليمات",
    # The judge spoken to
    r"(?:note|message|attention|attn|instructions?|reminder|memo|dear|hey|hello|hi|to)[ :,-]{1,3}"
    rf"(?:to |for )?(?:the |any |all |our )?{_JUDGE}\b",
    rf"(?:you are|you're|as|act as|acting as) (?:now )?(?:the|an?|a strict) (?:\w+ )?{_JUDGE}\b",
    rf"{_JUDGE}[^.\n]{{0,40}}\b(?:must|should|shall|please|will)\b[^.\n]{{0,60}}"
    r"(?:score|mark|rate|grade|label|pass|output|return|answer)",
    # A score asked for
    rf"(?:score|rate|grade|mark|label|classify|evaluate|judge) (?:this|the|our|my) (?:\w+ )?{_THING}"
    rf"[^.\n]{{0,30}}\b(?:as|with|at|a)\b[^.\n]{{0,30}}{_BEST}",
    r"(?:give|assign|award|return|output|set)[^.\n]{0,40}"
    r"(?:perfect|full|maximum|max|highest|top|1\.0|10/10|100 ?%)[^.\n]{0,20}"
    r"(?:score|rating|marks?|grade|verdict)",
    r"(?:the |your )?(?:final )?(?:verdict|score|label|rating|grade)\b[\"']?\s*"
    r"(?:must be|should be|has to be|[:=])\s*[\"']?"
    r"(?:fully|honest_fallback|not_applicable|excellent|pass(?:ed)?|perfect|1\.0|10/10)",
    r"(?:评分|評分|评估)[^。\n]{0,12}(?:满分|滿分|最高分|通过)",
    # A boundary forged
    r"(?:end|start|begin(?:ning)?)[ _-](?:of[ _-])?(?:the[ _-])?transcript",
    r"</?(?:transcript|conversation|evaluation|rubric)>",
    r"\"turn\"\s*:\s*\d+\s*,\s*\"role\"|={3,}\s*(?:end|begin)\b",
    r"<\|im_(?:start|end)\|>|\[/?inst\]|<<sys>>",
    r"(?:^|\n)\s*(?:#{2,}|<|\[)\s*(?:new |updated |revised )?(?:system|evaluat\w+|judge|grading)\s*"
    r"(?:prompt|instructions?|message|note|override)",
)


@cache
def _injection() -> re.Pattern[str]:
    """Compiled when the first anchor is met, not at import."""
    return re.compile("|".join(_PATTERNS))


_ANCHORS = (
    "ignor",
    "disregard",
    "instru",
    "anweisung",
    "forget",
    "override",
    "reviewing",
    "as-a-judge",
    "as a judge",
    "judge",
    "evaluat",
    "grader",
    "verdict",
    "score",
    "rating",
    "grade th",
    "grade my",
    "grade our",
    "marks",
    "mark th",
    "label",
    "rate th",
    "rate my",
    "rate our",
    "classify",
    "transcript",
    "conversation>",
    "rubric",
    "im_start",
    "im_end",
    "[inst",
    "[/inst",
    "<<sys",
    "system prompt",
    "system message",
    "system note",
    "system override",
    '"role"',
    "===",
)
_ALL_ANCHORS = (
    *_ANCHORS,
    "забудь",
    "инструкц",
    "指令",
    "指示",
    "命令",
    "無視",
    "忽略",
    "无视",
    "지시",
    "تجاهل",
    "评分",
    "評分",
    "评估",
)
"""No pattern matches without an anchor, and looking for anchors costs a tenth of the patterns."""
