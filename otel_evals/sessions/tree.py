"""The spans of a session as trees: tolerant of lost parents, late children, links and clock ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from otel_evals.dialects.facts import Facts

__all__ = ["Tree"]


class Tree:
    """Parent and child relations of one session's spans."""

    def __init__(self, facts: Sequence[Facts]) -> None:
        known = {(f.trace_id, f.span_id): f for f in facts}
        pseudo = {key: f for key, f in known.items() if f.kind == "pseudo"}
        self._parent: dict[int, Facts] = {}
        self._children: dict[int, list[Facts]] = {}
        self.orphans: list[Facts] = []
        """Spans whose parents are missing, and that no wrapper of their trace encloses."""
        real = sorted((f for f in known.values() if f.kind != "pseudo"), key=lambda f: (f.start_ns, f.span_id))
        for item in real:
            parent_id, hops = item.parent_id, 0
            while parent_id is not None and (over := pseudo.get((item.trace_id, parent_id))) is not None and hops < 50:
                parent_id, hops = over.parent_id, hops + 1
            parent = known.get((item.trace_id, parent_id)) if parent_id is not None else None
            if parent is item:
                parent = None
            if (
                parent is not None
                and item.kind in ("agent", "chain")
                and item.start_ns > parent.end_ns > parent.start_ns
            ):
                continue  # leaked context: work begun after its parent's end is nobody's child
            if parent is not None:
                self._parent[id(item)] = parent
            elif item.parent_id is not None:
                self.orphans.append(item)
        self._adopt(real)
        depth = self._depths(real)
        self.ordered = sorted(real, key=lambda f: (f.start_ns, depth[id(f)], -f.end_ns, f.trace_id, f.span_id))
        for item in self.ordered:
            if (above := self._parent.get(id(item))) is not None:
                self._children.setdefault(id(above), []).append(item)
        self.roots = [f for f in self.ordered if id(f) not in self._parent]
        self._group = self._link_groups(real)
        self._models: dict[int, list[Facts]] = {}
        for item in self.ordered:
            if item.kind == "model":
                self._models.setdefault(item.trace_id, []).append(item)

    def has_children(self, item: Facts) -> bool:
        """Whether anything is known to be under a span."""
        return id(item) in self._children

    def children(self, item: Facts) -> list[Facts]:
        """The spans directly below one, in time order."""
        return self._children.get(id(item), [])

    def subtree(self, root: Facts) -> list[Facts]:
        """A span and all below it, in time order, parents first."""
        out: list[Facts] = []
        stack = [root]
        while stack:
            item = stack.pop()
            out.append(item)
            stack.extend(reversed(self._children.get(id(item), ())))
        return out

    def models_below(self, root: Facts) -> list[Facts]:
        """Model calls under a span, itself excluded."""
        return [f for f in self.subtree(root) if f.kind == "model" and f is not root]

    def own_models(self, root: Facts) -> list[Facts]:
        """Model calls under a span that are its own, not those of agents behind its tools."""
        out: list[Facts] = []
        stack = list(reversed(self._children.get(id(root), ())))
        while stack:
            item = stack.pop()
            if item.kind == "model":
                out.append(item)
            if item.kind != "tool":
                stack.extend(reversed(self._children.get(id(item), ())))
        return out

    def models_beside(self, item: Facts) -> list[Facts]:
        """Model calls of the same trace that are not under a span."""
        return [f for f in self._models.get(item.trace_id, ()) if f is not item]

    def together(self, first: Facts, second: Facts) -> bool:
        """Whether two spans belong to one trace, or to traces joined by links."""
        return self._group.get(first.trace_id, first.trace_id) == self._group.get(second.trace_id, second.trace_id)

    def anchors(self, user_of: Callable[[Facts], str | None]) -> list[Facts]:
        """The outermost spans that state what the person said, and model calls outside them, in time order."""
        out: list[Facts] = []
        stack = list(reversed(self.roots))
        while stack:
            item = stack.pop()
            if item.kind == "model" or (item.kind in ("agent", "chain") and user_of(item) is not None):
                out.append(item)
            elif item.kind != "tool":
                children = self._children.get(id(item), [])
                if item.kind == "agent" and not any(
                    f.kind in ("agent", "chain", "model") for f in self.subtree(item)[1:]
                ):
                    out.append(item)
                stack.extend(reversed(children))
        return sorted(out, key=lambda f: f.start_ns)

    def root_within(self, anchor: Facts, spans: Sequence[Facts]) -> Facts:
        """The outermost wrapper of a turn that no other turn shares: where scores are attached."""
        best = anchor
        above = self._parent.get(id(anchor))
        members = {id(f) for f in spans}
        while above is not None and id(above) in members:
            best = above
            above = self._parent.get(id(above))
        return best

    def _adopt(self, items: Sequence[Facts]) -> None:
        """Orphans go to the innermost wrapper of their trace that was open all their time.

        Spans between the two may say nothing about agents and were never kept.
        """
        wrappers: dict[int, list[Facts]] = {}
        if self.orphans:
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
                self._parent[id(orphan)] = max(around, key=lambda w: (w.start_ns, -w.end_ns, w.span_id))
            else:
                lost.append(orphan)
        self.orphans = lost

    def _depths(self, items: Sequence[Facts]) -> dict[int, int]:
        """Distance of each span from its root. Hostile or corrupt ids may form rings: each is cut at one span."""
        depths: dict[int, int] = {}
        for item in items:
            path: list[int] = []
            on_path: set[int] = set()
            at: Facts | None = item
            while at is not None and id(at) not in depths:
                key = id(at)
                if key in on_path:
                    self._parent.pop(key, None)
                    break
                path.append(key)
                on_path.add(key)
                at = self._parent.get(key)
            depth = depths.get(id(at), -1) if at is not None else -1
            for key in reversed(path):
                depth += 1
                depths[key] = depth
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
