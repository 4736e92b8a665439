"""The spans of a session as trees: tolerant of lost parents, late children, links and clock ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from otel_evals.dialects.facts import Facts

__all__ = ["Tree"]

_start = attrgetter("start_ns")


class Tree:
    """Parent and child relations of one session's spans."""

    def __init__(self, facts: Sequence[Facts]) -> None:
        self._parent: dict[Facts, Facts] = {}
        self._children: dict[Facts, list[Facts]] = {}
        self._models: dict[int, list[Facts]] | None = None
        self._group: dict[int, int] = {}
        self.orphans: list[Facts] = []
        """Spans whose parents are missing, and that no wrapper of their trace encloses."""
        traces: dict[int, dict[int, Facts]] = {}
        for item in facts:
            spans = traces.get(item.trace_id)
            if spans is None:
                spans = traces[item.trace_id] = {}
            spans[item.span_id] = item
        self.ordered = [item for spans in traces.values() for item in spans.values() if item.kind != "pseudo"]
        self.ordered.sort(key=_start)
        clear = self._find_parents(traces)
        if self.orphans:
            self._adopt(self.ordered)
        if not clear:
            depth = self._depths(sorted(self.ordered, key=lambda f: (f.start_ns, f.span_id)))
            self.ordered.sort(key=lambda f: (f.start_ns, depth[f], -f.end_ns, f.trace_id, f.span_id))
        self.roots: list[Facts] = []
        self._behind_tools = False
        linked = False
        for item in self.ordered:
            if item.seldom is not None and item.seldom.links:
                linked = True
            above = self._parent.get(item)
            if above is None:
                self.roots.append(item)
                continue
            siblings = self._children.get(above)
            if siblings is None:
                self._children[above] = [item]
                self._behind_tools = self._behind_tools or above.kind == "tool"
            else:
                siblings.append(item)
        if linked:
            self._group = self._link_groups(self.ordered)

    def _find_parents(self, traces: dict[int, dict[int, Facts]]) -> bool:
        """Notes each span's parent, or that it is missing.

        Returns whether every span began at a time of its own, and after its parent: then the starts alone are the
        order, and the parents form no rings.
        """
        clear = True
        before: int | None = None
        for item in self.ordered:
            if item.start_ns == before:
                clear = False
            before = item.start_ns
            if item.parent_id is None:
                continue
            spans = traces[item.trace_id]
            parent = spans.get(item.parent_id)
            hops = 0
            while parent is not None and parent.kind == "pseudo" and hops < 50:
                parent = spans.get(parent.parent_id) if parent.parent_id is not None else None
                hops += 1
            if parent is None or parent is item:
                self.orphans.append(item)
                continue
            if item.start_ns > parent.end_ns > parent.start_ns and item.kind in ("agent", "chain"):
                continue  # leaked context: work begun after its parent's end is nobody's child
            self._parent[item] = parent
            if parent.start_ns >= item.start_ns:
                clear = False
        return clear

    def has_children(self, item: Facts) -> bool:
        """Whether anything is known to be under a span."""
        return item in self._children

    def parent(self, item: Facts) -> Facts | None:
        """The span directly above one."""
        return self._parent.get(item)

    def children(self, item: Facts) -> Sequence[Facts]:
        """The spans directly below one, in time order."""
        return self._children.get(item, ())

    def subtree(self, root: Facts) -> list[Facts]:
        """A span and all below it, in time order, parents first."""
        if root not in self._children:
            return [root]
        out: list[Facts] = []
        stack = [root]
        while stack:
            item = stack.pop()
            out.append(item)
            below = self._children.get(item)
            if below is not None:
                stack += reversed(below)
        return out

    def models_below(self, root: Facts) -> list[Facts]:
        """Model calls under a span, itself excluded."""
        return [f for f in self.subtree(root) if f.kind == "model" and f is not root]

    def own_models(self, root: Facts, below: Sequence[Facts]) -> list[Facts]:
        """Model calls under a span that are its own, not those of agents behind its tools.

        Args:
            below: the span's subtree.
        """
        if len(below) == 1:
            return []
        if not self._behind_tools:
            return [f for f in below if f.kind == "model" and f is not root]
        out: list[Facts] = []
        stack = list(reversed(self._children[root]))
        while stack:
            item = stack.pop()
            if item.kind == "model":
                out.append(item)
            if item.kind != "tool":
                stack += reversed(self._children.get(item, ()))
        return out

    def models_beside(self, item: Facts) -> list[Facts]:
        """Model calls of the same trace that are not under a span."""
        if self._models is None:
            self._models = {}
            for model in self.ordered:
                if model.kind == "model":
                    self._models.setdefault(model.trace_id, []).append(model)
        return [f for f in self._models.get(item.trace_id, ()) if f is not item]

    def together(self, first: Facts, second: Facts) -> bool:
        """Whether two spans belong to one trace, or to traces joined by links."""
        if first.trace_id == second.trace_id or not self._group:
            return first.trace_id == second.trace_id
        return self._group.get(first.trace_id, first.trace_id) == self._group.get(second.trace_id, second.trace_id)

    def anchors(self, speaks: Callable[[Facts], bool]) -> list[Facts]:
        """The outermost spans that state what the person said, and model calls outside them, in time order."""
        out: list[Facts] = []
        stack = list(reversed(self.roots))
        while stack:
            item = stack.pop()
            if item.kind == "model" or (item.kind in ("agent", "chain") and speaks(item)):
                out.append(item)
            elif item.kind != "tool":
                if item.kind == "agent" and self._works_alone(item):
                    out.append(item)
                stack += reversed(self._children.get(item, ()))
        out.sort(key=_start)
        return out

    def _works_alone(self, agent: Facts) -> bool:
        """Whether no model and no wrapper is under an agent's span."""
        return not any(f.kind in ("agent", "chain", "model") for f in self.subtree(agent)[1:])

    def _adopt(self, items: Sequence[Facts]) -> None:
        """Orphans go to the innermost wrapper of their trace that was open all their time.

        Spans between the two may say nothing about agents and were never kept.
        """
        wrappers: dict[int, list[Facts]] = {}
        for item in items:
            if item.kind in ("agent", "chain"):
                wrappers.setdefault(item.trace_id, []).append(item)
        lost = []
        for orphan in self.orphans:
            around = [
                w
                for w in wrappers.get(orphan.trace_id, ())
                if w is not orphan
                and w.start_ns <= orphan.start_ns
                and w.end_ns >= orphan.end_ns
                and (w.start_ns, -w.end_ns) != (orphan.start_ns, -orphan.end_ns)
            ]
            if around:
                self._parent[orphan] = max(around, key=lambda w: (w.start_ns, -w.end_ns, w.span_id))
            else:
                lost.append(orphan)
        self.orphans = lost

    def _depths(self, items: Sequence[Facts]) -> dict[Facts, int]:
        """Distance of each span from its root. Hostile or corrupt ids may form rings: each is cut at one span."""
        depths: dict[Facts, int] = {}
        for item in items:
            path: list[Facts] = []
            on_path: set[Facts] = set()
            at: Facts | None = item
            while at is not None and at not in depths:
                if at in on_path:
                    self._parent.pop(at, None)
                    break
                path.append(at)
                on_path.add(at)
                at = self._parent.get(at)
            depth = depths.get(at, -1) if at is not None else -1
            for passed in reversed(path):
                depth += 1
                depths[passed] = depth
        return depths

    def _link_groups(self, items: Sequence[Facts]) -> dict[int, int]:
        """Traces joined by span links count as one."""
        group: dict[int, int] = {}

        def find(trace: int) -> int:
            while group.get(trace, trace) != trace:
                trace = group[trace]
            return trace

        linked = [item for item in items if item.links]
        if not linked:
            return {}
        present = {item.trace_id for item in items}
        for item in linked:
            for trace_id, _ in item.links:
                if trace_id in present and trace_id != item.trace_id:
                    first, second = sorted((find(item.trace_id), find(trace_id)))
                    group[second] = first
        return {trace: find(trace) for trace in present} if group else {}
