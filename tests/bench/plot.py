# SPDX-License-Identifier: Apache-2.0
"""The medians as bars, in SVG. Pure."""
import statistics
from html import escape

WIDTH, LEFT, ROW, HEAD = 860, 190, 20, 34
CACHEWARM, OTHERS, LIMIT = "#1f6f50", "#9aa7b1", "#d8b24a"


def bars_of(runs, contenders, corpus, disk):
    """{group: [(name, median, best)]} of what ran."""
    groups = {}
    for contender in contenders:
        walls = [s.wall for s in runs.of(corpus.name, disk, contender.title) if s]
        if walls:
            groups.setdefault(contender.group, []).append(
                (contender.name, statistics.median(walls), min(walls)))
    return groups


def row_of(top, name, median, best, scale):
    """One bar: the median as its length, the best round as a line."""
    colour = {"cachewarm": CACHEWARM, "limit": LIMIT}.get(name, OTHERS)
    mark = LEFT + best * scale
    return [f'<text x="{LEFT - 8}" y="{top + 13}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{top + 3}" width="{median * scale:.1f}" height="{ROW - 6}" '
            f'fill="{colour}"/>',
            f'<line x1="{mark:.1f}" x2="{mark:.1f}" y1="{top + 1}" y2="{top + ROW - 1}" '
            'stroke="#222"/>',
            f'<text x="{LEFT + median * scale + 6:.1f}" y="{top + 13}">{median:.2f} s</text>']


def svg(runs, contenders, corpus, disk):
    """One panel per group, each with a scale of its own."""
    groups = bars_of(runs, contenders, corpus, disk)
    lines, top = [], HEAD
    for group, rows in groups.items():
        scale = (WIDTH - LEFT - 90) / max(median for _, median, _ in rows)
        lines.append(f'<text x="8" y="{top + 14}" font-weight="bold">{escape(group)}</text>')
        top += ROW
        for name, median, best in rows:
            lines += row_of(top, name, median, best, scale)
            top += ROW
        top += ROW // 2
    title = (f"{corpus.name}: {corpus.files} files, {corpus.megabytes:.0f} MB on {disk}; "
             "median, line = best round")
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + 8}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{top + 8}" fill="white"/>',
        f'<text x="8" y="20" font-size="14">{escape(title)}</text>', *lines, "</svg>", ""])
