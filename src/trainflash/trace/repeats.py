"""Traced calls of all processes of a run → functions that did equal work again.

A call is repeated when the same function ran before, in any process, with equal arguments and an equal result. A function that ever gave
two results for equal arguments draws at random, or depends on what its arguments do not say: none of its calls counts. So it is assumed
that what a function reads beside its arguments (globals, attributes, files) and did not change over the windows does not change later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from trainflash.trace.facts import Facts
from trainflash.trace.model import RepeatedCall

FIELDS = ("place", "arguments", "result", "ns", "caller", "where", "hashable", "is_method", "bytes", "containers")


@dataclass
class _Seen:
    """What all processes together did so far."""

    calls: set = field(default_factory=set)  # (place, arguments)
    samples: set = field(default_factory=set)  # names of samples that a window held


def repeated(processes: list[tuple[int, str, Facts]]) -> dict[int, tuple[RepeatedCall, ...]]:
    """For each pid (`processes` = pid, role, facts) the functions seen to repeat, most repeated time first."""
    results: dict[tuple, set] = defaultdict(set)
    for _, _, facts in processes:
        for place, call, _ in calls(facts):
            results[(place, call["arguments"])].add(call["result"])
    impure = {place for (place, _), found in results.items() if len(found) > 1}
    again = _seen_again([facts for _, _, facts in processes])
    seen = _Seen()
    return {pid: _of_process(role, facts, seen, impure, again) for pid, role, facts in processes}


def _seen_again(all_facts: list[Facts]) -> float:
    """Of the samples in traced collations, the part that an earlier one held already: its calls are those that can repeat."""
    samples, chosen = 0, []
    for facts in all_facts:
        for window in facts.all("calls"):
            if window.get("where") == "collate":
                samples += int(window.get("batch", 0))
                chosen += window.get("chosen", [])
    return (len(chosen) - len(set(chosen))) / samples if samples else 0.0


def calls(facts: Facts) -> Iterator[tuple[tuple, dict, dict]]:
    """(place, call, window) of each traced call, in order."""
    places = {fact["id"]: (*fact["at"], fact.get("operator", "")) for fact in facts.all("function")}
    for window in facts.all("calls"):
        for row in window.get("rows", []):
            call = {"containers": False} | dict(zip(FIELDS, row, strict=False))  # earlier versions did not tell
            place = places.get(call.get("place"))
            if place is not None and len(call) == len(FIELDS):
                yield place, call, window


def _of_process(role: str, facts: Facts, seen: _Seen, impure: set, again: float) -> tuple[RepeatedCall, ...]:
    windows: dict[tuple, int] = defaultdict(int)
    held: dict[tuple, set] = defaultdict(set)
    known: dict[int, bool] = {}  # windows whose sample an earlier one held, so that all its calls could repeat
    for window in facts.all("calls"):
        windows[_kind(window)] += int(window.get("window_ns", 0))
        sampled = window.get("chosen", [])
        known[id(window)] = window.get("where") != "fetch" or not sampled or sampled[0] in seen.samples
        seen.samples.update(sampled)
        held[_kind(window)].update(sampled)
    names = {fact["id"]: str(fact["at"][2]) for fact in facts.all("function")}
    groups: dict[tuple, list[tuple[dict, bool, bool]]] = defaultdict(list)
    for place, call, window in calls(facts):
        key = (place, call["arguments"])
        repeats = key in seen.calls and place not in impure
        seen.calls.add(key)
        groups[(place, _kind(window), names.get(call["caller"], ""))].append((call, repeats, repeats or known[id(window)]))
    found = []
    for (place, kind, caller), rows in groups.items():
        where, loader = kind
        repeats = [call for call, again_here, _ in rows if again_here]
        if not repeats:
            continue
        comparable = max(len(repeats), round(again * len(rows))) if where == "collate" else sum(could for _, _, could in rows)
        found.append(
            RepeatedCall(
                location=facts.location(place[:3]),
                qualname=place[2],
                role=role,
                where=where,
                caller=caller,
                calls=len(rows),
                repeats=len(repeats),
                distinct=len({call["arguments"] for call, _, _ in rows}),
                inclusive_ns=sum(int(call["ns"]) for call, _, _ in rows),
                repeat_ns=sum(int(call["ns"]) for call in repeats),
                window_ns=windows[kind],
                hashable=all(call["hashable"] for call, _, _ in rows),
                containers=all(call["hashable"] or call["containers"] for call, _, _ in rows),
                is_method=any(call["is_method"] for call, _, _ in rows),
                result_bytes=repeats[-1]["bytes"],
                comparable=comparable,
                loader=loader,
                sampled=len(held[kind]),
            )
        )
    return tuple(sorted(found, key=lambda call: -call.repeat_ns))


def _kind(window: dict) -> tuple[str, int | None]:
    """(where, loader): windows of one kind stand for one part of the time."""
    loader = window.get("loader")
    return str(window.get("where")), None if loader is None or int(loader) < 0 else int(loader)
