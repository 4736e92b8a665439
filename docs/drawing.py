"""Draws a panel as SVG: lines, stacked areas, large numbers and tables, in the manner of a dashboard."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

__all__ = ["Box", "Curve", "curves", "frame", "numbers", "shown", "table", "words"]

COLOURS = ("#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#96d98d", "#fade2a", "#ffa6b0")
BACK, LINE, TEXT, FAINT = "#181b1f", "#2c3235", "#d8d9da", "#8e9297"

LEGEND_ROWS = 6


@dataclass(frozen=True)
class Box:
    """Where something is drawn, in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass
class Curve:
    """One series over time."""

    name: str
    points: Sequence[tuple[float, float]]
    """(time in s, value)."""
    thin: bool = False
    """The end of an interval."""
    base: Sequence[float] = field(default_factory=tuple)
    """Stacked: the values that it stands on."""


def shown(value: float, unit: str, decimals: int | None = None) -> str:
    """A number as Grafana would write it."""
    if not math.isfinite(value):
        return "–"
    if unit == "percentunit":
        return f"{100 * value:.{1 if decimals is None else decimals}f}%"
    if unit == "currencyUSD":
        return f"${value:,.{2 if decimals is None else decimals}f}"
    if unit == "bytes":
        return f"{value / 1024:,.0f} KiB" if value >= 1024 else f"{value:,.0f} B"
    if unit == "s":
        return f"{1000 * value:.3g} ms" if 0 < value < 1 else f"{value:.3g} s"
    return f"{value:,.{decimals}f}" if decimals is not None else f"{value:,.4g}"


def words(x: float, y: float, text: str, *, size: int = 12, colour: str = TEXT, anchor: str = "start") -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{colour}' text-anchor='{anchor}'>{escape(text)}</text>"
    )


def frame(box: Box, title: str) -> str:
    """The panel's frame with its title."""
    room = int(box.width / 7.2)
    text = title if len(title) <= room else f"{title[: room - 1]}…"
    return (
        f"<rect x='{box.x:g}' y='{box.y:g}' width='{box.width:g}' height='{box.height:g}' rx='3'"
        f" fill='{BACK}' stroke='{LINE}'/>" + words(box.x + 10, box.y + 20, text, size=13)
    )


def curves(
    box: Box,
    lines: Sequence[Curve],
    unit: str,
    top: float | None,
    span: tuple[float, float],
    marks: Sequence[tuple[float, float]] = (),
    decimals: int | None = None,
) -> str:
    """Lines, or areas where they have a base, with axes and a legend of the last values; marks are exemplars."""
    named = [line for line in lines if not line.thin][:LEGEND_ROWS]
    plot = Box(box.x + 58, box.y + 34, box.width - 72, box.height - 62 - 16 * len(named))
    ends = [v for line in lines for (_, v) in line.points if math.isfinite(v)]
    ends += [b + v for line in lines for (_, v), b in zip(line.points, line.base, strict=False)]
    high = top or max([*ends, 0.0]) * 1.08 or 1.0
    begin, end = span

    def at(time: float, value: float) -> str:
        x = plot.x + plot.width * (time - begin) / max(end - begin, 1e-9)
        return f"{x:.1f},{plot.y + plot.height * (1 - min(value, high) / high):.1f}"

    parts = [_grid(plot, high, unit, span, decimals)]
    ends_of = {line.name: [at(t, v) for t, v in line.points if math.isfinite(v)] for line in lines}
    if band := ends_of.get("lower", []) + ends_of.get("upper", [])[::-1]:
        parts.append(f"<polygon points='{' '.join(band)}' fill='{COLOURS[0]}' fill-opacity='.15'/>")
    colour_of: dict[str, str] = {}
    for line in lines:
        key = line.name.removesuffix(" lower").removesuffix(" upper") if line.thin else line.name
        key = "rate" if key in ("lower", "upper") else key
        colour = colour_of.setdefault(key, COLOURS[len(colour_of) % len(COLOURS)])
        points = [(t, v) for t, v in line.points if math.isfinite(v)]
        if line.base and points:
            tops = [at(t, b + v) for (t, v), b in zip(points, line.base, strict=False)]
            feet = [at(t, b) for (t, _), b in zip(points, line.base, strict=False)]
            parts.append(f"<polygon points='{' '.join(tops + feet[::-1])}' fill='{colour}' fill-opacity='.75'/>")
        elif points:
            style = "stroke-width='1' stroke-dasharray='3 4'" if line.thin else "stroke-width='2'"
            path = " ".join(at(t, v) for t, v in points)
            parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' {style}/>")
    for t, v in marks:
        x, y = at(t, v).split(",")
        parts.append(f"<path d='M{x},{y}m-4,0l4,-4l4,4l-4,4z' fill='none' stroke='#c9d1d9'/>")
    if not ends:
        parts.append(words(plot.x + plot.width / 2, plot.y + plot.height / 2, "nothing", colour=FAINT, anchor="middle"))
    y = plot.y + plot.height + 36
    for line in named:
        parts.append(f"<rect x='{box.x + 12}' y='{y - 4}' width='12' height='3' fill='{colour_of[line.name]}'/>")
        parts.append(words(box.x + 30, y, line.name[: int(box.width / 7.5)], size=11, colour=FAINT))
        last = next((v for _, v in reversed(line.points) if math.isfinite(v)), math.nan)
        parts.append(words(box.x + box.width - 12, y, shown(last, unit, decimals), size=11, anchor="end"))
        y += 16
    return "".join(parts)


def _grid(plot: Box, high: float, unit: str, span: tuple[float, float], decimals: int | None) -> str:
    parts = []
    for step in range(5):
        y = plot.y + plot.height * (1 - step / 4)
        parts.append(f"<line x1='{plot.x}' y1='{y:.1f}' x2='{plot.x + plot.width}' y2='{y:.1f}' stroke='{LINE}'/>")
        parts.append(
            words(
                plot.x - 6,
                y + 4,
                shown(high * step / 4, unit, 0 if high >= 4 else decimals),
                size=10,
                colour=FAINT,
                anchor="end",
            )
        )
    for step in range(4):
        x = plot.x + plot.width * step / 3
        seconds = round((span[1] - span[0]) * step / 3)
        parts.append(
            words(
                x,
                plot.y + plot.height + 15,
                f"{seconds // 60}:{seconds % 60:02d}",
                size=10,
                colour=FAINT,
                anchor="middle",
            )
        )
    return "".join(parts)


def numbers(box: Box, values: Sequence[tuple[str, float]], unit: str, decimals: int | None) -> str:
    """Large values with their names, side by side or in two lines."""
    if not values:
        return words(box.x + box.width / 2, box.y + box.height / 2, "–", size=24, anchor="middle")
    columns = min(len(values), 2)
    rows = -(-len(values) // columns)
    height = (box.height - 30) / rows
    size = int(min(30, height * 0.42))
    parts = []
    for index, (name, value) in enumerate(values):
        x = box.x + box.width * (index % columns + 0.5) / columns
        y = box.y + 30 + height * (index // columns) + height * 0.5
        parts.append(words(x, y, shown(value, unit, decimals), size=size, colour=COLOURS[0], anchor="middle"))
        parts.append(words(x, y + 15, name[: int(box.width / columns / 6)], size=10, colour=FAINT, anchor="middle"))
    return "".join(parts)


def table(box: Box, heads: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[float]) -> str:
    """Rows as far as there is room. `widths`: shares of the width, which add up to 1."""
    parts, y = [], box.y + 46
    lefts = [box.x + 12 + (box.width - 24) * sum(widths[:i]) for i in range(len(widths))]
    for left, head in zip(lefts, heads, strict=True):
        parts.append(words(left, y, head, size=11, colour="#6e9fff"))
    for row in rows[: int((box.height - 56) / 20)]:
        y += 20
        for left, width, cell in zip(lefts, widths, row, strict=True):
            room = max(3, int(box.width * width / 6.6))
            parts.append(words(left, y, cell if len(cell) <= room else f"{cell[: room - 1]}…", size=11))
    return "".join(parts)
