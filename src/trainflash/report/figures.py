"""How every figure is written, in one place. Missing values are words, never 0."""

from __future__ import annotations

from trainflash.schema import Command, Evidence, Fidelity, Location, Resources, Speedup, WholeRun

MISSING = "not measured"
DASH = "–"  # the same in a narrow cell; the table then carries `DASH_NOTE`
DASH_NOTE = f"{DASH}: {MISSING}"
_NARROW = 0.1  # within 10 % of 1 a factor gets a third decimal, so that 1.018 does not read as the 1.02 it failed to reach


def percent(share: float | None) -> str:
    """`0.614` → `61.4 %`; a share that is not 0 never reads as 0."""
    if share is None:
        return MISSING
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{share * 100:.1f} %"


def ms(value: float | None) -> str:
    """Milliseconds with three significant digits and the unit: `0.042 ms`, `41.2 ms`, `1,240 ms`."""
    return MISSING if value is None else f"{number(value)} ms"


def number(value: float | None) -> str:
    """Three significant digits without an exponent, thousands separated."""
    if value is None:
        return MISSING
    size = abs(value)
    if size == 0:
        return "0"
    if size < 0.001:
        return f"{value:.1e}"
    decimals = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{decimals}f}"


def cell(value: float | None) -> str:
    """`number` for a narrow table cell, where a missing value is a dash and next to nothing is `< 0.001`."""
    if value is None:
        return DASH
    return "< 0.001" if 0 < value < 0.001 else number(value)


def seconds(value: float | None) -> str:
    """`8.2 s`, `3 min 20 s`, `2 h 5 min`."""
    if value is None:
        return MISSING
    if round(value, 1) < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def times(factor: float | None) -> str:
    """A speed-up: `1.83×`, `1.018×`, `12.4×`."""
    return MISSING if factor is None else f"{factor:.{_decimals(factor)}f}×"


def interval(speedup: Speedup | None) -> str:
    """`1.83× [1.74, 1.92]`: mean and 95 % interval, all looks at the data included; all three equally precise."""
    if speedup is None:
        return MISSING
    decimals = max(_decimals(value) for value in (speedup.mean, speedup.ci_low, speedup.ci_high))
    return f"{speedup.mean:.{decimals}f}× [{speedup.ci_low:.{decimals}f}, {speedup.ci_high:.{decimals}f}]"


def _decimals(factor: float) -> int:
    return 3 if abs(factor - 1) < _NARROW else 2 if factor < 10 else 1


def tails(speedup: Speedup | None) -> str:
    """Speed-ups of the slow steps, or why there are none."""
    if speedup is None:
        return MISSING
    named = (("p95", speedup.p95), ("p99", speedup.p99), ("p95 of equal steps", speedup.own_p95), ("p99 of equal steps", speedup.own_p99))
    known = [f"{name} {times(value)}" for name, value in named if value is not None]
    if not known:
        return f"{MISSING}: {speedup.tail_reason}" if speedup.tail_reason else MISSING
    return ", ".join(known) + (f" ({speedup.tail_reason})" if speedup.tail_reason else "")


def whole_run(whole: WholeRun | None) -> str:
    """`1.21× [1.17, 1.25] over 12,000 steps: 8 min 20 s → 6 min 53 s, measured`, how it changes along the run, and the break-even."""
    if whole is None:
        return MISSING
    told = [f"the time lost before them is won back after {count(whole.break_even_steps, 'step')}"] if whole.break_even_steps else []
    if whole.steps is None:
        head = "its length is not known"
    elif whole.speedup is None:
        head = f"nothing is claimed of its {count(whole.steps, 'step')}"
    else:
        bounds = f" [{number(whole.ci_low)}, {number(whole.ci_high)}]" if whole.ci_low is not None else ""
        spent = f"{seconds(whole.baseline_s)} → {seconds(whole.candidate_s)}" + (", measured" if whole.basis == "measured" else "")
        head = f"{times(whole.speedup)}{bounds} over {count(whole.steps, 'step')}: {spent}"
    told += [whole.seen] if whole.seen and not whole.by_step else []
    told += [f"step {part.first:,} to {part.last:,} {times(part.speedup)}" for part in whole.by_step]
    return "; ".join([head, *told])


def memory(used: Resources | None) -> str:
    """`310 → 651 MB on the host, at most`, and the same of the device."""
    if used is None:
        return MISSING
    pairs = (("on the host", used.baseline_peak_mb, used.candidate_peak_mb),)
    pairs += (("on the device", used.baseline_device_peak_mb, used.candidate_device_peak_mb),)
    known = [f"{number(ours)} → {number(theirs)} MB {where}" for where, ours, theirs in pairs if ours is not None and theirs is not None]
    return f"{', '.join(known)}, at most" if known else MISSING


def cpu(used: Resources | None) -> str:
    """`11.0 → 5.20 ms a step, all processes`."""
    if used is None or used.baseline_cpu_ms is None or used.candidate_cpu_ms is None:
        return MISSING
    return f"{number(used.baseline_cpu_ms)} → {number(used.candidate_cpu_ms)} ms a step, all processes"


def delta(value: float | None) -> str:
    """A difference of losses; small ones with an exponent, so that they never read as 0."""
    if value is None:
        return MISSING
    return "0" if value == 0 else f"{value:.3g}" if abs(value) < 0.01 else f"{value:.4f}"


def loss(fidelity: Fidelity | None) -> str:
    """Mean absolute loss delta against the tolerance, over how many updates."""
    if fidelity is None or fidelity.mean_abs_loss_delta is None:
        return MISSING
    return f"{delta(fidelity.mean_abs_loss_delta)} over {count(fidelity.updates, 'update')} (tolerance {delta(fidelity.tolerance)})"


def count(n: int | None, noun: str) -> str:
    """`1 start`, `2,000 steps`."""
    return MISSING if n is None else f"{n:,} {noun}{'' if n == 1 else 's'}"


def evidence(item: Evidence) -> str:
    """The figure with its unit; shares and factors in the form that they have everywhere."""
    if isinstance(item.value, str):
        return f"{item.value} {item.unit}".strip()
    if item.unit == "share":
        return percent(item.value)
    if item.unit in {"×", "x"}:
        return times(item.value)
    whole = float(item.value).is_integer() and abs(item.value) >= 1
    return f"{f'{item.value:,.0f}' if whole else number(item.value)} {item.unit}".strip()


def words(name: str) -> str:
    """`fetch_cpu_share` → `fetch cpu share`."""
    return name.replace("_", " ")


def place(location: Location | None) -> str:
    """`data.py:31 in __getitem__`."""
    if location is None:
        return "no single line"
    return f"{location} in {location.function}" if location.function else str(location)


def command(typed: Command) -> str:
    """The command as a person would type it, our environment additions in front."""
    return " ".join([*(f"{name}={value}" for name, value in typed.env.items()), *typed.argv])


def short(text: str, width: int) -> str:
    """At most `width` characters on one line, cut with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: max(width - 1, 0)] + "…"


def clock(at_utc: str) -> str:
    """`2026-11-21T12:00:00Z` → `2026-11-21 12:00`; anything else as it is."""
    return at_utc[:16].replace("T", " ") if len(at_utc) >= 16 and at_utc[10] == "T" else at_utc


def visible(text: str) -> str:
    """Text of others with control and direction-changing characters made visible, so that it cannot repaint what a person approves."""
    return "".join(
        char if char in "\n\t" or not _hidden(char) else char.encode("unicode_escape").decode() for char in text.replace("\r\n", "\n")
    )


def _hidden(char: str) -> bool:
    return (
        char < " "
        or "\x7f" <= char <= "\x9f"
        or char in "\u200b\u200e\u200f\u2028\u2029\ufeff"
        or "\u202a" <= char <= "\u202e"
        or "\ud800" <= char <= "\udfff"  # a byte that is no UTF-8
        or "\u2066" <= char <= "\u2069"
    )
