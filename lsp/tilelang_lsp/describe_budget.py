"""How is it said what a block takes of its target, in one line and on a page?"""

from __future__ import annotations

from tilelang_lsp.model import NOMINAL, Budget, Insight, Kernel

NAMED = 5  # tiles on a page
ASSUMED = 4  # values in a line


def byte_text(size: int) -> str:
    """`512 bytes`, `4 KiB`, `1.5 MiB`."""
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size} bytes"


def budget_line(budget: Budget, name_target: bool = False) -> str:
    """The line above a kernel."""
    parts = []
    about = "" if budget.exact else "up to "
    if budget.limit is not None:
        over = " OVER BUDGET" if budget.shared > budget.limit else ""
        of = f"{byte_text(budget.shared)} of {byte_text(budget.limit)}"
        parts.append(f"shared {about}{of}{over}")
    elif budget.shared:
        parts.append(f"shared {about}{byte_text(budget.shared)}")
    if budget.threads is not None:
        parts.append(f"{budget.threads} threads")
    if budget.registers:
        parts.append(f"{budget.registers}+ registers")
    if budget.blocks is not None and budget.warps is not None and budget.most_warps:
        percent = 100 * budget.warps // budget.most_warps
        blocks = f"{budget.blocks} block{'' if budget.blocks == 1 else 's'}"
        parts.append(f"{blocks} an SM, {percent} % occupancy")
    said = " · ".join(parts) or "no budget"
    return f"{budget.target}: {said}" if name_target else said


def budget_page(budget: Budget) -> str:
    """All of it as Markdown, the biggest contributors first."""
    lines = [f"**{budget.target}**", ""]
    if budget.limit is not None:
        share = 100 * budget.shared / budget.limit
        lines.append(
            f"- shared memory: {budget.shared} of {budget.limit} bytes ({share:.0f} %)"
            + ("" if budget.exact else ", every tile counted on its own")
        )
    for tile in budget.shares[:NAMED]:
        stages = f"{tile.stages} stages × " if tile.stages > 1 else ""
        place = f", line {tile.span.line}" if tile.span else ""
        lines.append(f"  - `{tile.name}` {stages}{byte_text(tile.size)}{place}")
    if budget.threads is not None:
        lines.append(f"- {budget.threads} threads a block")
    if budget.registers:
        limit = f" of {budget.registers_limit}" if budget.registers_limit else ""
        lines.append(f"- fragments take up to {budget.registers} registers of a thread{limit}; "
                     "addresses and values between statements come on top")  # fmt: skip
    if budget.blocks is not None:
        limited = f", limited by {' and '.join(budget.limited_by)}" if budget.limited_by else ""
        lines.append(f"- at most {budget.blocks} blocks, {budget.warps} of {budget.most_warps} "
                     f"warps at once{limited} (registers left aside)")  # fmt: skip
    return "\n".join(lines)


def assumed_line(
    kernel: Kernel, assumed: tuple[tuple[str, str, str], ...], nominal: bool,
    insight: Insight | None,
) -> str:  # fmt: skip
    """What a kernel was specialised with, and what is still open."""
    known = assumed or tuple((n, v, "") for n, v in kernel.values)
    names = {name for name, _, _ in known}
    left = [name for name in kernel.open_names if name not in names]
    parts = []
    if known:
        parts.append(f"assumes {_by_origin(known)}")
    if left:
        parts.append(f"open: {', '.join(left)}")
    if nominal and insight is not None and (known or insight.budgets):
        parts.append(stand_in_text(insight))
    return "; ".join(parts)


def _by_origin(known: tuple[tuple[str, str, str], ...]) -> str:
    """`M = 64, N = 8 (a comment in the file), K = 2 (its default)`."""
    given: dict[str, list[str]] = {}
    for name, value, origin in known[:ASSUMED]:
        given.setdefault(origin, []).append(f"{name} = {value}")
    more = f" and {len(known) - ASSUMED} more" if len(known) > ASSUMED else ""
    if more and len({origin for *_, origin in known}) == 1:
        ((origin, values),) = given.items()
        return f"{', '.join(values)}{more}{f' ({origin})' if origin else ''}"
    texts = [", ".join(v) + (f" ({origin})" if origin else "") for origin, v in given.items()]
    return ", ".join(texts) + more


def stand_in_text(insight: Insight) -> str:
    """As on which GPU a kernel without a target is shown, and why on that one."""
    needed = "" if insight.target == NOMINAL else ", which it needs"
    return f"as on {insight.target}{needed}: no target is set"


def assumed_page(insight: Insight) -> str:
    """Every assumed value with where it comes from."""
    lines = [f"- `{name} = {value}`: {origin}" for name, value, origin in insight.assumed]
    return "\n".join(lines)
