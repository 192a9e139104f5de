"""Traced calls of all processes of a run → functions that did equal work again.

A call is repeated when the same function ran before, in any process, with equal arguments and an equal result.
"""

from __future__ import annotations

from collections import defaultdict

from trainflash.trace.facts import Facts
from trainflash.trace.model import RepeatedCall

FIELDS = ("place", "arguments", "result", "ns", "caller", "where", "hashable", "is_method", "bytes")


def repeated(processes: list[tuple[int, str, Facts]]) -> dict[int, tuple[RepeatedCall, ...]]:
    """For each pid (`processes` = pid, role, facts) the functions seen to repeat, most repeated time first."""
    seen: dict[tuple, int] = defaultdict(int)
    results: dict[tuple, set] = defaultdict(set)
    for _, _, facts in processes:
        for place, call in _calls(facts):
            results[(place, call["arguments"])].add(call["result"])
    again = _seen_again([facts for _, _, facts in processes])
    return {pid: _of_process(role, facts, seen, results, again) for pid, role, facts in processes}


def _seen_again(all_facts: list[Facts]) -> float:
    """Of the samples in traced collations, the part that an earlier one held already: its calls are those that can repeat."""
    samples, chosen = 0, []
    for facts in all_facts:
        for window in facts.all("calls"):
            if window.get("where") == "collate":
                samples += int(window.get("batch", 0))
                chosen += window.get("chosen", [])
    return (len(chosen) - len(set(chosen))) / samples if samples else 0.0


def _calls(facts: Facts):
    places = {fact["id"]: tuple(fact["at"]) for fact in facts.all("function")}
    for window in facts.all("calls"):
        for row in window.get("rows", []):
            call = dict(zip(FIELDS, row, strict=False))
            place = places.get(call.get("place"))
            if place is not None and len(call) == len(FIELDS):
                yield place, call


def _of_process(role: str, facts: Facts, seen: dict, results: dict, again: float) -> tuple[RepeatedCall, ...]:
    windows: dict[str, int] = defaultdict(int)
    for window in facts.all("calls"):
        windows[str(window.get("where"))] += int(window.get("window_ns", 0))
    names = {fact["id"]: str(fact["at"][2]) for fact in facts.all("function")}
    groups: dict[tuple, list[tuple[dict, bool]]] = defaultdict(list)
    for place, call in _calls(facts):
        key = (place, call["arguments"])
        again = seen[key] > 0 and len(results[key]) == 1
        seen[key] += 1
        groups[(place, call["where"], names.get(call["caller"], ""))].append((call, again))
    found = []
    for (place, where, caller), rows in groups.items():
        repeats = [call for call, again in rows if again]
        if not repeats:
            continue
        found.append(
            RepeatedCall(
                location=facts.location(place),
                qualname=place[2],
                role=role,
                where=where,
                caller=caller,
                calls=len(rows),
                repeats=len(repeats),
                distinct=len({call["arguments"] for call, _ in rows}),
                inclusive_ns=sum(int(call["ns"]) for call, _ in rows),
                repeat_ns=sum(int(call["ns"]) for call in repeats),
                window_ns=windows[where],
                hashable=all(call["hashable"] for call, _ in rows),
                is_method=any(call["is_method"] for call, _ in rows),
                result_bytes=repeats[-1]["bytes"],
                comparable=max(len(repeats), round(again * len(rows))) if where == "collate" else len(rows),
            )
        )
    return tuple(sorted(found, key=lambda call: -call.repeat_ns))
