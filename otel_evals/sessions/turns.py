"""Facts of one session → its turns.

Structure differs with every framework: content on roots, on model spans, in events; one trace per turn, per model
call, or for a whole conversation. So each span that holds content is read as a view of the conversation, in time
order, and only what is new in it is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from otel_evals.dialects.decoding import fold, plain_text, valid_text
from otel_evals.dialects.facts import Facts, Message
from otel_evals.sessions.calls import CallBook, valid_failure
from otel_evals.sessions.model import ToolFailure, Turn
from otel_evals.sessions.portions import Portion, answer_of, correct_roles, cut, is_person
from otel_evals.sessions.tree import Tree

__all__ = ["Draft", "build_turns", "to_turn"]


@dataclass(slots=True, eq=False)
class Draft:
    """A turn while it is being pieced together."""

    user: str | None
    agent: str | None = None
    aliases: set[str] = field(default_factory=set)
    """Folded forms of the person's words, as roots and models report them."""
    anchor: Facts | None = None
    """The span the turn was read from; None: restored from a later history."""
    spans: list[Facts] = field(default_factory=list)
    portions: list[Portion] = field(default_factory=list)
    book: CallBook = field(default_factory=CallBook)
    interim: list[str] = field(default_factory=list)
    error: ToolFailure | None = None

    def knows(self, text: str | None) -> bool:
        """Whether the person's words are these."""
        return bool(text) and fold(text) in self.aliases


def build_turns(tree: Tree) -> list[Draft]:
    """Turns of one session, in order."""
    reading = _Reading(tree)
    for anchor in tree.anchors(reading.user_of):
        reading.fold(anchor)
    reading.attach_rest()
    return reading.finish()


def to_turn(draft: Draft) -> Turn:
    """The finished turn."""
    spans = draft.spans
    anchor = draft.anchor
    return Turn(
        user=valid_text(draft.user) if draft.user else draft.user,
        agent=valid_text(draft.agent) if draft.agent else draft.agent,
        interim=tuple([valid_text(text) for text in draft.interim]),
        tool_calls=draft.book.build(),
        start_ns=min((s.start_ns for s in spans), default=0),
        end_ns=max((s.end_ns for s in spans), default=0),
        trace_id=f"{anchor.trace_id:032x}" if anchor else None,
        root_span_id=f"{anchor.span_id:016x}" if anchor else None,
        sampled=anchor.sampled if anchor else False,
        error=valid_failure(draft.error),
        sources=tuple([line for facts in spans for line in _sources(facts)]),
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
        self._placed: dict[int, Draft] = {}
        self._said: set[str] = set()
        self._results: set[str] = set()
        for facts in tree.ordered:
            for message in facts.outputs:
                if message.role == "assistant" and message.text:
                    self._said.add(message.folded)
            if facts.tool is not None and facts.tool.result is not None:
                self._results.add(fold(plain_text(facts.tool.result)))

    # What a span says

    def _inputs(self, facts: Facts) -> Sequence[Message]:
        return correct_roles(facts.inputs, self._said, self._results)

    def _views(self, facts: Facts) -> list[Portion]:
        """A span's conversation, cut into portions, its output included."""
        inputs = self._inputs(facts)
        begin = facts.seldom.new_from if facts.seldom else None
        if begin is not None and begin < len(inputs):
            head, tail = inputs[:begin], inputs[begin:]
            portions = [*cut(head), *cut(tail)]
        else:
            portions = cut(inputs)
        if not any(is_person(m) for m in facts.outputs):
            if portions:
                portions[-1].messages.extend(facts.outputs)
            return portions
        whole = cut(facts.outputs)  # a run's output that repeats the history
        if not portions:
            return whole
        said = fold(portions[-1].user)
        if any(fold(portion.user) == said for portion in whole):
            return _up_to(whole, portions[-1].user)
        portions[-1].messages.extend(whole[-1].messages)
        return portions

    def user_of(self, facts: Facts) -> str | None:
        """The person's words on a wrapper span, if they are the person's: the models below must have heard them."""
        portions = self._views(facts)
        if not portions:
            return None
        text = portions[-1].user
        folded = fold(text)
        heard = False
        models = self._tree.own_models(facts)
        if not models and facts.kind != "agent":
            models = self._tree.models_beside(facts)
        for model in models:
            for message in self._inputs(model):
                if message.role == "user" and message.text:
                    heard = True
                    other = message.folded
                    if folded in other or other in folded:
                        return text
        return None if heard and facts.kind != "agent" else text

    # Adding a span's view to the conversation

    def fold(self, anchor: Facts) -> None:
        """Adds one content-bearing span and all below it."""
        below = self._tree.subtree(anchor)
        models = [f for f in (anchor, *self._tree.own_models(anchor)) if f.kind == "model" and (f.inputs or f.outputs)]
        draft = Draft(None, anchor=anchor, spans=list(below))
        own = self._views(anchor)
        history: list[Portion] = own[:-1]
        if own:
            draft.user = own[-1].user
            draft.aliases.add(fold(own[-1].user))
            draft.agent = own[-1].answer
        elif anchor.outputs:
            draft.agent = answer_of(anchor.outputs)
        main = self._main_view(anchor, models, draft) or self._main_view(anchor, below, draft)
        if main:
            draft.aliases.add(fold(main[-1].user))
            draft.user = draft.user or main[-1].user
            if len(main) - 1 > len(history):
                history = main[:-1]
        for facts in (anchor, *(f for f in below if f is not anchor)):
            if facts.kind in ("model", "agent", "chain"):
                self._read_portion(facts, draft)
        last = self._last_answer(models)
        if draft.agent is None or (last and anchor.kind == "chain" and fold(draft.agent) not in fold(last)):
            draft.agent = last or draft.agent
        self._place(draft, history)

    def _main_view(self, anchor: Facts, models: list[Facts], draft: Draft) -> list[Portion]:
        """The view of the first model that heard the person's words."""
        for model in models:
            if model is anchor:
                continue
            views = self._views(model)
            if not views:
                continue
            heard = fold(views[-1].user)
            if draft.user is None or any(alias in heard or heard in alias for alias in draft.aliases):
                return views
        return []

    def _read_portion(self, facts: Facts, draft: Draft) -> None:
        views = self._views(facts)
        if views:
            if facts.kind == "model" or draft.knows(views[-1].user):
                draft.portions.append(views[-1])
        elif facts.outputs or facts.inputs:
            draft.portions.append(Portion("", [*(m for m in facts.inputs if not is_person(m)), *facts.outputs]))

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
            at = self._turns.index(target) - 1
        else:
            self._turns.append(draft)
            target = draft
            at = len(self._turns) - 2
        for facts in draft.spans:
            self._placed[id(facts)] = target
        self._align(history, at)

    def _align(self, history: list[Portion], at: int) -> None:
        """Fills earlier turns from a history, and restores those whose own spans were never seen."""
        for portion in reversed(history):
            match = next((i for i in range(at, -1, -1) if self._turns[i].knows(portion.user)), None)
            if match is not None:
                known = self._turns[match]
                known.portions.append(portion)
                if known.agent is None:
                    known.agent = portion.answer
                at = match - 1
            elif portion.answer:
                restored = Draft(portion.user, portion.answer, {fold(portion.user)}, portions=[portion])
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
        if history and last.knows(history[-1].user) and last.agent and fold(history[-1].answer) == fold(last.agent):
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
        """Model calls in traces of their own: the next call carries the tool calls of the one before."""
        if last.agent is not None or last.anchor is None or draft.anchor is None:
            return False
        if last.anchor.kind != "model" or draft.anchor.kind != "model":
            return False
        asked = {(c.id, c.name) for p in last.portions for c in p.calls()}
        if not asked:
            return True
        return any((c.id, c.name) in asked for p in draft.portions for c in p.calls())

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
            return target.anchor.kind != "agent" and fold(draft.agent) in self._said
        return draft.anchor.kind == "agent" or target.anchor.kind != "agent"

    # Spans that no anchor encloses

    def attach_rest(self) -> None:
        """Tools and wrappers outside every anchor go to the turn of their call, their trace, or their time."""
        for facts in self._tree.ordered:
            if id(facts) in self._placed:
                continue
            draft = self._home(facts)
            if draft is None:
                draft = Draft(None, anchor=facts)
                self._turns.append(draft)
            draft.spans.append(facts)
            self._placed[id(facts)] = draft
            if facts.kind in ("agent", "chain"):
                own = answer_of(facts.outputs)
                if own and draft.agent is None and facts.kind == "agent":
                    draft.agent = own

    def _home(self, facts: Facts) -> Draft | None:
        if facts.tool is not None and facts.tool.id:
            for draft in self._turns:
                if any(c.id == facts.tool.id for p in draft.portions for c in p.calls()):
                    return draft
        for child in self._tree.subtree(facts):
            if id(child) in self._placed:
                return self._placed[id(child)]
        near = [d for d in self._turns if d.anchor and self._tree.together(d.anchor, facts)]
        if not near and facts.kind not in ("tool", "other"):
            near = []
        elif not near:
            near = [d for d in self._turns if d.anchor]
        before = [d for d in near if d.anchor and d.anchor.start_ns <= facts.start_ns]
        return before[-1] if before else (near[0] if near else None)

    def finish(self) -> list[Draft]:
        """Completes each turn's calls, root and error."""
        for draft in self._turns:
            for portion in draft.portions:
                draft.book.add_portion(portion)
            tools = [f for f in draft.spans if f.tool is not None]
            tools.sort(key=lambda f: (f.tool is None or f.tool.id is None, f.start_ns))
            for facts in tools:
                draft.book.add_span(facts)
            self._conclude(draft)
        return [d for d in self._turns if d.user or d.agent or d.spans or len(d.book)]

    def _conclude(self, draft: Draft) -> None:
        if draft.anchor is not None:
            draft.anchor = self._tree.root_within(draft.anchor, draft.spans)
        models = [f for f in draft.spans if f.kind == "model"]
        if draft.agent is None:
            for facts in draft.spans:
                if facts.failure and facts.kind in ("model", "agent", "chain"):
                    draft.error = draft.error or facts.failure
        answer = fold(draft.agent)
        seen = {answer}
        for model in models:
            for message in model.outputs:
                text = message.text.strip()
                if message.calls and text and fold(text) not in seen:
                    seen.add(fold(text))
                    draft.interim.append(text)


def _within(draft: Draft, last: Draft) -> bool:
    """Whether a draft's spans lie within a turn's: the same work, exported by a second instrumentation."""
    if draft.anchor is None or last.anchor is None:
        return False
    return last.anchor.start_ns <= draft.anchor.start_ns and draft.anchor.end_ns <= max(s.end_ns for s in last.spans)


def _up_to(portions: list[Portion], text: str) -> list[Portion]:
    """The portions up to the last one that the person opened with these words."""
    folded = fold(text)
    for index in range(len(portions) - 1, -1, -1):
        if fold(portions[index].user) == folded:
            return portions[: index + 1]
    return portions
