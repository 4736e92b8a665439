"""Facts of one session → its turns.

Structure differs with every framework: content on roots, on model spans, in events; one trace per turn, per model
call, or for a whole conversation. So each span that holds content is read as a view of the conversation, in time
order, and only what is new in it is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from otel_evals.dialects.decoding import fold, plain_text, valid_text
from otel_evals.dialects.facts import Facts, Message
from otel_evals.sessions.calls import CallBook, valid_failure
from otel_evals.sessions.model import ToolCall, ToolFailure, Turn
from otel_evals.sessions.portions import Portion, answer_of, correct_roles, cut, is_person, last_words, only_user
from otel_evals.sessions.tree import Tree

__all__ = ["Draft", "build_turns", "to_turn"]


_UNSAID = Message("user", "")
"""Stands for the person's words where a span states none."""


@dataclass(slots=True, eq=False)
class Draft:
    """A turn while it is being pieced together."""

    user: str | None
    anchor: Facts | None
    """The span the turn was read from; None: restored from a later history."""
    aliases: set[str]
    """Folded forms of the person's words, as roots and models report them."""
    spans: list[Facts]
    portions: list[Portion]
    """What was said in the turn, as far as it tells of tool calls or results."""
    agent: str | None = None
    interim: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    error: ToolFailure | None = None

    def add_portion(self, portion: Portion) -> None:
        """Adds what was said, if it tells of tools."""
        for message in portion.messages:
            if message.calls or message.results:
                self.portions.append(portion)
                return


def build_turns(tree: Tree) -> list[Draft]:
    """Turns of one session, in order."""
    reading = _Reading(tree)
    for anchor in tree.anchors(reading.speaks):
        reading.fold(anchor)
    reading.attach_rest()
    return reading.finish()


def to_turn(draft: Draft) -> Turn:
    """The finished turn."""
    anchor = draft.anchor
    start, end = (draft.spans[0].start_ns, draft.spans[0].end_ns) if draft.spans else (0, 0)
    sources: list[str] = []
    for facts in draft.spans:
        if facts.start_ns < start:
            start = facts.start_ns
        if facts.end_ns > end:
            end = facts.end_ns
        if facts.seldom is not None:
            sources += _sources(facts)
    return Turn(
        user=valid_text(draft.user) if draft.user else draft.user,
        agent=valid_text(draft.agent) if draft.agent else draft.agent,
        interim=draft.interim,
        tool_calls=draft.calls,
        start_ns=start,
        end_ns=end,
        trace_id=f"{anchor.trace_id:032x}" if anchor else None,
        root_span_id=f"{anchor.span_id:016x}" if anchor else None,
        sampled=anchor.sampled if anchor else False,
        error=valid_failure(draft.error),
        sources=tuple(sources),
    )


def _sources(facts: Facts) -> list[str]:
    """`chat gpt-4o [5b75c0…]: messages_in from gen_ai.input.messages`."""
    if facts.seldom is None or not facts.seldom.sources:
        return []
    named = ", ".join(f"{fact} from {key}" for fact, key in facts.seldom.sources.items())
    return [f"{facts.kind} {facts.name!r} [{facts.span_id:016x}]: {named}"]


class _Reading:
    """One pass over a session's spans."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._turns: list[Draft] = []
        self._placed: dict[Facts, Draft] = {}
        self._latest: dict[Facts, Portion] = {}
        """The last portion of each span that has any."""
        self._corrected: dict[Facts, Sequence[Message]] = {}
        self._results: set[str] = set()
        self._known_said: set[str] | None = None
        self._by_call: dict[str, Draft] | None = None
        for facts in tree.ordered:
            if facts.inputs or facts.outputs:
                latest = self._find_latest(facts)
                if latest is not None:
                    self._latest[facts] = latest

    # What a span says

    def _said(self) -> set[str]:
        """Folded texts of all model outputs."""
        if self._known_said is None:
            self._known_said = {
                message.folded
                for facts in self._tree.ordered
                for message in facts.outputs
                if message.role == "assistant" and message.text
            }
        return self._known_said

    def _inputs(self, facts: Facts) -> Sequence[Message]:
        return self._correct(facts) if only_user(facts.inputs) else facts.inputs

    def _correct(self, facts: Facts) -> Sequence[Message]:
        """Inputs that are all labelled `user`."""
        if not self._corrected:
            self._results = {
                fold(plain_text(item.tool.result))
                for item in self._tree.ordered
                if item.tool is not None and item.tool.result is not None
            }
        known = self._corrected.get(facts)
        if known is None:
            known = self._corrected[facts] = correct_roles(facts.inputs, self._said(), self._results)
        return known

    def _views(self, facts: Facts) -> list[Portion]:
        """A span's conversation, cut into portions, its output included."""
        inputs = self._inputs(facts)
        begin = facts.seldom.new_from if facts.seldom else None
        if begin is not None and begin < len(inputs):
            portions = [*cut(inputs[:begin]), *cut(inputs[begin:])]
        else:
            portions = cut(inputs)
        if last_words(facts.outputs) < 0:
            if portions:
                portions[-1] = _longer(portions[-1], facts.outputs)
            return portions
        whole = cut(facts.outputs)  # a run's output that repeats the history
        if not portions:
            return whole
        said = portions[-1].words.folded
        for index in range(len(whole) - 1, -1, -1):
            if whole[index].words.folded == said:
                return whole[: index + 1]
        portions[-1] = _longer(portions[-1], whole[-1].messages)
        return portions

    def _find_latest(self, facts: Facts) -> Portion | None:
        outputs = facts.outputs
        if (facts.seldom is not None and facts.seldom.new_from is not None) or last_words(outputs) >= 0:
            views = self._views(facts)
            return views[-1] if views else None
        inputs = self._inputs(facts)
        at = last_words(inputs)
        if at < 0:
            return None
        return Portion(inputs[at], outputs if at + 1 == len(inputs) else (*inputs[at + 1 :], *outputs), at)

    def _history(self, facts: Facts, latest: Portion) -> list[Portion]:
        """All of a span's portions but the last."""
        if latest.before == 0:
            return []
        return cut(self._inputs(facts)[: latest.before]) if latest.before > 0 else self._views(facts)[:-1]

    def speaks(self, facts: Facts) -> bool:
        """Whether a wrapper span states what the person said: the models below must have heard it."""
        latest = self._latest.get(facts)
        if latest is None:
            return False
        if facts.kind == "agent":
            return True
        folded = latest.words.folded
        heard = False
        models = self._tree.own_models(facts, self._tree.subtree(facts)) or self._tree.models_beside(facts)
        for model in models:
            for message in reversed(self._inputs(model)):
                if message.role == "user" and message.text:
                    heard = True
                    other = message.folded
                    if folded in other or other in folded:
                        return True
        return not heard

    # Adding a span's view to the conversation

    def fold(self, anchor: Facts) -> None:
        """Adds one content-bearing span and all below it."""
        below = self._tree.subtree(anchor)
        draft = Draft(None, anchor, set(), below, [])
        history: list[Portion] = []
        models: list[Facts] = []
        own = self._latest.get(anchor)
        if own is not None:
            draft.user = own.user
            draft.aliases.add(own.words.folded)
            draft.agent = own.answer
            history = self._history(anchor, own)
        elif anchor.outputs:
            draft.agent = answer_of(anchor.outputs)
        if len(below) > 1:
            models = self._tree.own_models(anchor, below)
            said = own.words.folded if own is not None else None
            main = self._heard_by(models, said) or self._heard_by(below[1:], said)
            if main is not None and (heard := self._latest.get(main)) is not None:
                draft.aliases.add(heard.words.folded)
                draft.user = draft.user or heard.user
                longer = self._history(main, heard)
                if len(longer) > len(history):
                    history = longer
        for facts in below:
            if facts.kind in ("model", "agent", "chain"):
                latest = self._latest.get(facts)
                if latest is not None:
                    words = latest.words.folded
                    # Without model calls, a task around the person's words is all that tells of its tools.
                    if (
                        facts.kind == "model"
                        or words in draft.aliases
                        or (not models and _quotes(words, draft.aliases))
                    ):
                        draft.add_portion(latest)
                elif facts.inputs or facts.outputs:
                    draft.add_portion(_wordless(facts))
        if draft.agent is None or anchor.kind == "chain":
            last = self._last_answer([anchor, *models] if anchor.kind == "model" else models)
            if draft.agent is None or (last and fold(draft.agent) not in fold(last)):
                draft.agent = last or draft.agent
        self._place(draft, history)

    def _heard_by(self, spans: Iterable[Facts], said: str | None) -> Facts | None:
        """The first span that heard the person's words, folded; None: whatever they are."""
        for facts in spans:
            latest = self._latest.get(facts)
            if latest is not None:
                heard = latest.words.folded
                if said is None or said in heard or heard in said:
                    return facts
        return None

    def _last_answer(self, models: Iterable[Facts]) -> str | None:
        answer = None
        for model in models:
            found = answer_of(model.outputs)
            if found:
                answer = found
            elif any(m.calls for m in model.outputs):
                answer = None
        return answer

    def _place(self, draft: Draft, history: list[Portion]) -> None:
        """Appends the draft as a new turn, or joins it to the one it belongs to."""
        target = self._continues(draft, history)
        if target is not None:
            self._join(target, draft)
        else:
            self._turns.append(draft)
            target = draft
        for facts in draft.spans:
            self._placed[facts] = target
        if history:
            self._align(history, len(self._turns) - 2)

    def _align(self, history: list[Portion], at: int) -> None:
        """Fills earlier turns from a history, and restores those whose own spans were never seen."""
        for portion in reversed(history):
            folded = portion.words.folded
            match = at
            while match >= 0 and folded not in self._turns[match].aliases:
                match -= 1
            if match >= 0:
                known = self._turns[match]
                known.add_portion(portion)
                if known.agent is None:
                    known.agent = portion.answer
                at = match - 1
            elif portion.answer:
                restored = Draft(portion.user, None, {folded}, [], [], portion.answer)
                restored.add_portion(portion)
                self._turns.insert(at + 1, restored)

    def _continues(self, draft: Draft, history: list[Portion]) -> Draft | None:
        """The turn that a draft is more of; None when it is a new one."""
        if not self._turns:
            return None
        last = self._turns[-1]
        if last.anchor is None or draft.anchor is None:
            return None
        same_trace = self._tree.together(last.anchor, draft.anchor)
        if draft.user is None:
            return last if same_trace else None
        if (
            history
            and last.agent
            and history[-1].words.folded in last.aliases
            and fold(history[-1].answer) == fold(last.agent)
        ):
            return None  # proof: the history has the last turn as finished
        if not draft.aliases.isdisjoint(last.aliases):
            if same_trace or _within(draft, last):
                return last
            return last if self._resumes(last, draft) else None
        if not same_trace:
            return None
        if last.user is None:
            return last
        if draft.anchor.kind == "model" and last.anchor.kind == "model":
            return last
        if last.agent and draft.user and fold(draft.user) in fold(last.agent):
            return last
        return None

    def _resumes(self, last: Draft, draft: Draft) -> bool:
        """Model calls in traces of their own: the next call carries the tool calls of the one before, or results."""
        if last.agent is not None or last.anchor is None or draft.anchor is None:
            return False
        if self._begins_with_results(draft.anchor):
            return True
        asked = {(c.id, c.name) for p in last.portions for c in p.calls()}
        if last.anchor.kind != "model" or draft.anchor.kind != "model":
            asked = {key for key in asked if key[0]}  # of wrappers, ids alone are proof
        elif not asked:
            return True
        return any((c.id, c.name) in asked for p in draft.portions for c in p.calls())

    def _begins_with_results(self, anchor: Facts) -> bool:
        """Whether the first model call under a span was given results of tools that were called before it."""
        if anchor.kind == "model":
            return _heard_results(anchor)
        below = self._tree.subtree(anchor)
        models = self._tree.own_models(anchor, below)  # in time order
        if models:
            return _heard_results(models[0])
        return anchor.kind == "chain" and len(below) == 1 and _heard_results(anchor)

    def _join(self, target: Draft, draft: Draft) -> None:
        target.spans += draft.spans
        target.portions += draft.portions
        target.aliases |= draft.aliases
        target.user = target.user or draft.user
        if draft.agent and (target.agent is None or self._supersedes(draft, target)):
            target.agent = draft.agent

    def _supersedes(self, draft: Draft, target: Draft) -> bool:
        """Whether a later part of a turn knows its answer better than an earlier one."""
        if draft.anchor is None or target.anchor is None:
            return False
        if draft.anchor.kind == "chain":
            return target.anchor.kind != "agent" and fold(draft.agent) in self._said()
        return draft.anchor.kind == "agent" or target.anchor.kind != "agent"

    # Spans that no anchor encloses

    def attach_rest(self) -> None:
        """Tools and wrappers outside every anchor go to the turn of their call, their trace, or their time."""
        for facts in self._tree.ordered:
            if facts in self._placed:
                continue
            draft = self._home(facts)
            if draft is None:
                draft = Draft(None, facts, set(), [], [])
                self._turns.append(draft)
            draft.spans.append(facts)
            self._placed[facts] = draft
            if facts.kind == "agent" and draft.agent is None:
                draft.agent = answer_of(facts.outputs) or None

    def _home(self, facts: Facts) -> Draft | None:
        if facts.tool is not None and facts.tool.id:
            caller = self._callers().get(facts.tool.id)
            if caller is not None:
                return caller
        if self._tree.has_children(facts):
            for child in self._tree.subtree(facts):
                if child in self._placed:
                    return self._placed[child]
        anywhere = facts.kind in ("tool", "other")
        return self._nearest(facts, together=True) or (self._nearest(facts, together=False) if anywhere else None)

    def _callers(self) -> dict[str, Draft]:
        """Ids of tool calls → the first turn that names them."""
        if self._by_call is None:
            self._by_call = {}
            for draft in self._turns:
                for portion in draft.portions:
                    for call in portion.calls():
                        if call.id:
                            self._by_call.setdefault(call.id, draft)
        return self._by_call

    def _nearest(self, facts: Facts, together: bool) -> Draft | None:
        """The last turn begun by the start of a span, else the first; of its trace, or of all."""
        first: Draft | None = None
        nearest: Draft | None = None
        for draft in self._turns:
            if draft.anchor is None or (together and not self._tree.together(draft.anchor, facts)):
                continue
            first = first or draft
            if draft.anchor.start_ns <= facts.start_ns:
                nearest = draft
        return nearest or first

    def finish(self) -> list[Draft]:
        """Completes each turn's calls, root and error."""
        for draft in self._turns:
            self._conclude(draft)
        return [d for d in self._turns if d.user or d.agent or d.spans or d.calls]

    def _conclude(self, draft: Draft) -> None:
        tools: list[Facts] = []
        announcements: list[Message] = []
        for facts in draft.spans:
            if facts.tool is not None:
                tools.append(facts)
            if facts.kind == "model":
                for message in facts.outputs:
                    if message.calls and message.text:
                        announcements.append(message)
            if facts.failure and draft.agent is None and facts.kind in ("model", "agent", "chain"):
                draft.error = draft.error or facts.failure
        if tools or draft.portions:
            draft.calls = _calls(draft.portions, tools)
        if announcements:
            draft.interim = _interim(announcements, fold(draft.agent))
        self._find_root(draft)

    def _find_root(self, draft: Draft) -> None:
        """The outermost wrapper of a turn that no other turn shares: where scores are attached."""
        if draft.anchor is None:
            return
        above = self._tree.parent(draft.anchor)
        while above is not None and self._placed.get(above) is draft:
            draft.anchor = above
            above = self._tree.parent(above)


def _calls(portions: Sequence[Portion], tools: list[Facts]) -> tuple[ToolCall, ...]:
    """The tool calls that portions and the tools' own spans tell of."""
    book = CallBook()
    for portion in portions:
        book.add_portion(portion)
    if len(tools) > 1:
        tools.sort(key=lambda f: (f.tool is None or f.tool.id is None, f.start_ns))
    for facts in tools:
        book.add_span(facts)
    return book.build()


def _interim(announcements: Sequence[Message], answer: str) -> tuple[str, ...]:
    """What was said beside tool calls, each thing once, and not the answer again."""
    seen = {answer, ""}
    texts: list[str] = []
    for message in announcements:
        if message.folded not in seen:
            seen.add(message.folded)
            texts.append(valid_text(message.text.strip()))
    return tuple(texts)


def _wordless(facts: Facts) -> Portion:
    """A portion of a span that does not state the person's words."""
    return Portion(_UNSAID, [*(m for m in facts.inputs if not is_person(m)), *facts.outputs])


def _longer(portion: Portion, messages: Sequence[Message]) -> Portion:
    """A portion and what follows it."""
    return Portion(portion.words, (*portion.messages, *messages)) if messages else portion


def _quotes(words: str, aliases: set[str]) -> bool:
    return any(alias and alias in words for alias in aliases)


def _heard_results(facts: Facts) -> bool:
    """Whether a span was given results of tools that were called after the person's last words."""
    for message in reversed(facts.inputs):
        if message.results:
            return True
        if is_person(message):
            return False
    return False


def _within(draft: Draft, last: Draft) -> bool:
    """Whether a draft's spans lie within a turn's: the same work, exported by a second instrumentation."""
    if draft.anchor is None or last.anchor is None:
        return False
    return last.anchor.start_ns <= draft.anchor.start_ns and draft.anchor.end_ns <= max([s.end_ns for s in last.spans])
