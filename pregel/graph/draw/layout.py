"""Where the nodes and edges of a drawing stand: a small layered layout, from top to bottom. Pure.

1. Edges that close a loop are turned round for the layout only; then every edge leads down and each node stands below
   all that lead to it.
2. Every edge passes through at least one level between nodes, where it has a lane of its own and its label a place: no
   two edges share a line, and no edge crosses a node or a label.
3. Levels are ordered by the middle of their neighbours, keeping the order with the fewest crossings; then each level is
   placed as close under its neighbours as the distances allow.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
Size = tuple[float, float]
Point = tuple[float, float]
SWEEPS, PASSES = 24, 80


@dataclass(slots=True)
class Line:
    """An edge to lay out: its ends, the size of its label, whether it must stand on the last level."""

    source: str
    target: str
    label: Size = (0.0, 0.0)
    points: list[Point] = field(default_factory=list)  # from source to target, when it is laid out
    middle: Point = (0.0, 0.0)  # of the label


@dataclass(slots=True)
class Spacing:
    """Distances: between neighbours of a level, between levels, between the ends of edges on a node."""

    across: float = 28.0
    down: float = 22.0
    ends: float = 18.0
    lane: float = 6.0  # width of an edge on its way


@dataclass(slots=True)
class Layout:
    """Centres of the nodes, routes of the lines, and the size of it all."""

    centres: dict[str, Point]
    lines: list[Line]
    width: float
    height: float


@dataclass(slots=True, eq=False)
class _Spot:
    """A place on a level: a node, or an edge on its way."""

    width: float
    height: float
    level: int
    node: str = ""
    line: int = -1
    x: float = 0.0
    above: list[_Spot] = field(default_factory=list)
    below: list[_Spot] = field(default_factory=list)


def lay_out(
    sizes: Mapping[str, Size],
    lines: Sequence[Line],
    *,
    first: str | None = None,
    last: str | None = None,
    spacing: Spacing | None = None,
) -> Layout:
    """A layout of nodes and lines; `first` stands on the top level alone, `last` on the bottom one."""
    spacing = spacing or Spacing()
    straight = [(line.source, line.target) for line in lines if line.source != line.target]
    turned = _back_edges(list(sizes), straight, first)
    down = [(b, a) if (a, b) in turned else (a, b) for a, b in straight]
    ranks = _ranks(list(sizes), down, last)
    spots = {id: _Spot(*sizes[id], 2 * ranks[id], node=id) for id in sizes}
    chains: dict[int, list[_Spot]] = {}
    for number, line in enumerate(lines):
        if line.source != line.target:
            back = (line.source, line.target) in turned
            top, bottom = (line.target, line.source) if back else (line.source, line.target)
            chain = _chain(spots[top], spots[bottom], number, line, spacing)
            chains[number] = chain[::-1] if back else chain
    levels = _levels([*spots.values(), *(spot for chain in chains.values() for spot in chain[1:-1])])
    _order(levels)
    _place(levels, spacing)
    return _drawn(spots, levels, lines, chains, spacing)


def _back_edges(nodes: Sequence[str], edges: Iterable[tuple[str, str]], first: str | None) -> set[tuple[str, str]]:
    """The edges that lead back to where a walk from the first node has come from."""
    after: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        after[source].append(target)
    back: set[tuple[str, str]] = set()
    done: set[str] = set()
    for start in sorted(nodes, key=lambda node: node != first):
        path = [(start, iter(after[start]))] if start not in done else []
        on_path = {start}
        while path:
            node, rest = path[-1]
            further = next(rest, None)
            if further is None:
                path.pop()
                on_path.discard(node)
                done.add(node)
            elif further in on_path:
                back.add((node, further))
            elif further not in done:
                path.append((further, iter(after[further])))
                on_path.add(further)
    return back


def _ranks(nodes: Sequence[str], down: Sequence[tuple[str, str]], last: str | None) -> dict[str, int]:
    """The level of each node: one below the lowest that leads to it."""
    below: dict[str, list[str]] = {node: [] for node in nodes}
    open_above = dict.fromkeys(nodes, 0)
    for source, target in down:
        below[source].append(target)
        open_above[target] += 1
    ranks = dict.fromkeys(nodes, 0)
    ready = [node for node in nodes if not open_above[node]]
    while ready:
        node = ready.pop()
        for target in below[node]:
            ranks[target] = max(ranks[target], ranks[node] + 1)
            open_above[target] -= 1
            if not open_above[target]:
                ready.append(target)
    if last in ranks:
        ranks[last] = max(ranks[last], max((r for node, r in ranks.items() if node != last), default=0))
    return ranks


def _chain(top: _Spot, bottom: _Spot, number: int, line: Line, spacing: Spacing) -> list[_Spot]:
    """The spots that a line passes on its way down; its label stands on the level below its upper end."""
    chain = [top]
    for level in range(top.level + 1, bottom.level):
        wide = level == top.level + 1 and line.label[0] > 0
        width, height = line.label if wide else (spacing.lane, 0.0)
        chain.append(_Spot(width, height, level, line=number))
    chain.append(bottom)
    for upper, lower in itertools.pairwise(chain):
        upper.below.append(lower)
        lower.above.append(upper)
    return chain


def _levels(spots: Iterable[_Spot]) -> list[list[_Spot]]:
    found: dict[int, list[_Spot]] = {}
    for spot in spots:
        found.setdefault(spot.level, []).append(spot)
    return [found[level] for level in sorted(found)]


def _order(levels: list[list[_Spot]]) -> None:
    """Order each level by its neighbours, up and down again, and keep the best."""
    best, fewest = [list(level) for level in levels], _crossings(levels)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        walk = range(1, len(levels)) if downwards else range(len(levels) - 2, -1, -1)
        for number in walk:
            places = {id(s): place for place, s in enumerate(levels[number - 1 if downwards else number + 1])}
            own = {id(s): place for place, s in enumerate(levels[number])}

            def middle(
                spot: _Spot,
                places: dict[int, int] = places,
                own: dict[int, int] = own,
                downwards: bool = downwards,
                scale: float = 1.0 / max(1, len(levels[number])),
            ) -> float:
                near = [places[id(s)] for s in (spot.above if downwards else spot.below)]
                return sum(near) / len(near) if near else own[id(spot)] * scale * len(places)

            levels[number].sort(key=middle)
        if (crossings := _crossings(levels)) < fewest:
            best, fewest = [list(level) for level in levels], crossings
    levels[:] = best


def _crossings(levels: Sequence[Sequence[_Spot]]) -> int:
    count = 0
    for upper, lower in itertools.pairwise(levels):
        places = {id(spot): place for place, spot in enumerate(lower)}
        ends = [places[id(below)] for spot in upper for below in sorted(spot.below, key=lambda s: places[id(s)])]
        count += sum(a > b for i, a in enumerate(ends) for b in ends[i + 1 :])
    return count


def _place(levels: Sequence[Sequence[_Spot]], spacing: Spacing) -> None:
    """Choose x for every spot: as close to its neighbours as the distances on its level allow."""
    for level in levels:
        x = 0.0
        for spot in level:
            spot.x = x + spot.width / 2
            x += spot.width + spacing.across
    for number in range(PASSES):
        walk = levels if number % 2 == 0 else list(reversed(levels))
        both = number >= PASSES // 2
        for level in walk:
            wanted, weights = [], []
            for spot in level:
                near = spot.above + spot.below if both else (spot.above if number % 2 == 0 else spot.below)
                near = near or spot.above + spot.below
                weight = {id(s): 8.0 if spot.line >= 0 and s.line >= 0 else 2.0 for s in near}
                total = sum(weight.values())
                wanted.append(sum(s.x * weight[id(s)] for s in near) / total if near else spot.x)
                weights.append(max(total, 0.1))
            for spot, x in zip(level, _spread(level, wanted, weights, spacing), strict=True):
                spot.x = x


def _spread(level: Sequence[_Spot], wanted: Sequence[float], weights: Sequence[float], spacing: Spacing) -> list[float]:
    """The positions nearest to those wanted (least squares) that keep the distances; what is in the way is pooled."""
    offsets = [0.0]
    for left, right in itertools.pairwise(level):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + spacing.across)
    pools: list[tuple[float, float, int]] = []  # position, weight, how many
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        at, heavy, count = want - offset, weight, 1
        while pools and pools[-1][0] >= at:
            other, other_weight, other_count = pools.pop()
            at = (at * heavy + other * other_weight) / (heavy + other_weight)
            heavy, count = heavy + other_weight, count + other_count
        pools.append((at, heavy, count))
    starts = [at for at, _, count in pools for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=True)]


def _drawn(
    spots: Mapping[str, _Spot],
    levels: Sequence[Sequence[_Spot]],
    lines: Sequence[Line],
    chains: Mapping[int, list[_Spot]],
    spacing: Spacing,
) -> Layout:
    """The coordinates of it all, from the top left corner."""
    left = min((spot.x - spot.width / 2 for level in levels for spot in level), default=0.0)
    right = max((spot.x + spot.width / 2 for level in levels for spot in level), default=0.0)
    heights = [max(spot.height for spot in level) for level in levels]
    tops = [sum(heights[:number]) + spacing.down * number for number in range(len(levels))]
    y = {id(s): top + height / 2 for level, top, height in zip(levels, tops, heights, strict=True) for s in level}
    for level in levels:
        for spot in level:
            spot.x -= left
    ends = _ends(spots.values(), spacing)
    for number, chain in chains.items():
        line, points = lines[number], []
        for place, spot in enumerate(chain):
            if spot.line >= 0:
                points.append((spot.x, y[id(spot)]))
                if spot.height:
                    line.middle = (spot.x, y[id(spot)])
                continue
            other = chain[1] if place == 0 else chain[-2]
            border = spot.height / 2 if other.level > spot.level else -spot.height / 2
            points.append((ends[id(spot), id(other)], y[id(spot)] + border))
        line.points = points
    centres = {id_: (spot.x, y[id(spot)]) for id_, spot in spots.items()}
    return Layout(centres, list(lines), right - left, sum(heights) + spacing.down * max(0, len(levels) - 1))


def _ends(nodes: Iterable[_Spot], spacing: Spacing) -> dict[tuple[int, int], float]:
    """Where on a node each edge begins or ends: side by side in the order in which they come."""
    found: dict[tuple[int, int], float] = {}
    for node in nodes:
        for side in (node.above, node.below):
            ordered = sorted(side, key=lambda spot: spot.x)
            gap = min(spacing.ends, node.width * 0.8 / max(1, len(ordered)))
            for place, spot in enumerate(ordered):
                found[id(node), id(spot)] = node.x + (place - (len(ordered) - 1) / 2) * gap
    return found
