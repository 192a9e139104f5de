"""What both sides save: the tensors of their checkpoints, the plain values beside them, and the files that are left.

Tensors and values are those that were handed over; a file is read back, and must hold one of the states that were handed over.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

from trainflash.fidelity.checks import cadence, schedule
from trainflash.fidelity.drift import relative, weights_distance
from trainflash.fidelity.outcome import NONE_LEFT, Outcome
from trainflash.fidelity.pairing import Pair
from trainflash.fidelity.record import Stream

_MISSED = 4  # checkpoints of the baseline without one of the candidate, before its end has shown that it makes none
_SAVED_LIMIT = 0.01  # relative L2 of what is saved, or 10 times that of the weights in training where they have drifted farther
_ROUNDED = 1e-5  # what an average's rounding may be apart, relatively, in a tensor: as its weights where it is evaluated

Line = dict[str, Any]


def contents(pair: Pair) -> Outcome:
    """Contents of checkpoints: of the same plain values (an epoch, a step), else of the same update, else of the moment of saving."""
    old, new = _checkpoints(pair)
    if not old:
        return Outcome(None, "no checkpoint was seen")
    if not new and (pair.candidate_whole or (len(old) >= _MISSED and "cadence" not in pair.agreed)):
        return Outcome(False, f"{len(old)} checkpoints {NONE_LEFT}")
    if not new and "cadence" in pair.agreed:
        return Outcome(None, f"{len(old)} checkpoints → none so far; its own end was not seen")
    limit, comparable = _limit(pair), pair.prefix == pair.length
    rescheduled = schedule(pair).ok is False
    compared = 0
    for before, line in _matched(pair, old, new):
        if "keys" not in line or (before is not None and "keys" not in before):
            continue  # written, but nobody saw what
        if before is None:
            different = (
                "" if _is_of_its_moment(line, old) else "it holds neither the weights of that moment nor a state that the baseline saves"
            )
        else:
            different = _content(before, line, limit, values=comparable, rescheduled=rescheduled)
            if different and _only_drew(before, line, pair):
                different = ""
        compared += 1
        if different:
            return Outcome(False, f"after update {line['n']}: {different}")
    lost = _lost(pair, old, new)
    if lost:
        return Outcome(False, lost)
    if not compared:
        return Outcome(None, "no checkpoint's contents were seen on both sides after the same update")
    return Outcome(True, f"{compared} checkpoints with {'the same contents' if comparable else 'contents of the same kind'}")


def values(pair: Pair) -> Outcome:
    """Numbers in lists and arrays of checkpoints, and counts that move while the baseline trains. Those that chance moves are left out."""
    if pair.prefix != pair.length:
        return Outcome(None, "other work was done by then")
    found: dict[str, Line] = {}
    for name, line in _differing(pair):
        if name not in pair.by_chance:
            found.setdefault(name, line)
    if found:
        name, line = next(iter(found.items()))
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        return Outcome(False, f"after update {line['n']}: {name} is saved with other values{more}")
    compared = sum(bool(line.get("values") or line.get("counts")) for line in pair.candidate.checkpoints)
    return Outcome(True if compared else None, f"compared in {compared} checkpoints{_left_out(pair)}")


def _left_out(pair: Pair) -> str:
    return f"; {', '.join(sorted(pair.by_chance))} differ between two runs of the baseline too" if pair.by_chance else ""


def differing(pair: Pair) -> frozenset[str]:
    """Names of the plain values that differ; where other work was done, all that were saved."""
    return frozenset(name for name, _ in _differing(pair))


def files(pair: Pair) -> Outcome:
    """Files that were read back hold what was handed over, and what the baseline leaves at its end the candidate leaves too."""
    old = [(line, _torn(line, pair.baseline)) for line in pair.baseline.stored]
    for line in pair.candidate.stored:
        trouble = _torn(line, pair.candidate)
        place = pair.place("candidate", line["n"])
        here = [torn for each, torn in old if torn is not None and pair.place("baseline", each["n"]) == place]
        if trouble and not all(here or [torn for _, torn in old if torn is not None] or [""]):
            return Outcome(False, f"{line['target']}, saved after update {line['n']}, {trouble}")
    if pair.baseline_whole and pair.candidate_whole:
        lost = _not_left(pair, [line for line, torn in old if torn == "" and line.get("left")])
        if lost:
            return Outcome(False, lost)
    count = sum("digest" in line for line in pair.candidate.stored)
    return Outcome(True if count else None, f"{count} files were read back")


def rounded(pair: Pair) -> bool:
    """Whether a training that is bitwise the same saves numbers that differ, by however little."""
    both = _matched(pair, *_checkpoints(pair)) if pair.bitwise else ()
    return any(before is not None and before.get("digest") != line.get("digest") and _rounding(before, line) for before, line in both)


def checkpoint_cadence(pair: Pair) -> Outcome:
    old, new = _checkpoints(pair)
    return cadence([pair.place("baseline", line["n"]) for line in old], [pair.place("candidate", line["n"]) for line in new], pair)


def unseen(stream: Stream) -> tuple[str, ...]:
    """What was saved without anybody having seen its contents, as notes."""
    blind = sum("keys" not in line for line in stream.checkpoints)
    unread = {line["target"]: line["unread"] for line in stream.stored if "unread" in line}
    notes = [f"{blind} checkpoints were written whose contents were not seen"] if blind else []
    notes += [f"{name} was not read back: {why}" for name, why in list(unread.items())[:1]]
    if stream.written:
        names = ", ".join(sorted(set(stream.written))[:3])
        notes += [f"nobody looked into files as large as the weights that were written while it trained: {names}"]
    return tuple(notes)


def _limit(pair: Pair) -> float | None:
    """How far saved values may be apart; None: the training is bitwise the same, and so must be what it saves."""
    if pair.bitwise:
        return None
    live = max((distance for both in pair.weights if (distance := weights_distance(*both)) is not None), default=math.inf)
    return max(_SAVED_LIMIT, 10 * live)


def _matched(pair: Pair, old: list[Line], new: list[Line]) -> Iterator[tuple[Line | None, Line]]:
    """Each checkpoint of the candidate, beside the one of the baseline that it must equal."""
    waiting: dict[int, list[Line]] = {}
    for line in old:
        waiting.setdefault(pair.place("baseline", line["n"]), []).append(line)
    for line in new:
        here = waiting.get(pair.place("candidate", line["n"])) or []
        before = _counterpart(line, here, old)
        here[:] = [each for each in here if each is not before]
        yield before, line


def _counterpart(line: Line, here: list[Line], old: list[Line]) -> Line | None:
    """The baseline's checkpoint that this one must equal: the one with the same plain values, of the same place, or that is equal."""
    known = [each.get("scalars") for each in old]
    if line.get("scalars") and known.count(line["scalars"]) == 1:
        return old[known.index(line["scalars"])]
    if here:
        return next((each for each in here if each.get("keys") == line.get("keys")), here[0])
    return next(
        (each for each in old if "digest" in line and each.get("digest") == line["digest"] and each.get("keys") == line["keys"]), None
    )


def _lost(pair: Pair, old: list[Line], new: list[Line]) -> str:
    """A kind of contents that the baseline saves beside another one, and the candidate never does."""
    if "cadence" in pair.agreed and not pair.candidate_whole:
        return ""
    counts = [pair.place("candidate", line["n"]) for line in new]
    kinds = {line.get("keys") for line in new}
    for line in old:
        place = pair.place("baseline", line["n"])
        made = sum(pair.place("baseline", each["n"]) == place for each in old)
        if 0 < counts.count(place) < made and line.get("keys") not in kinds and None not in kinds:
            return f"after update {line['n']}: {line.get('target', 'a checkpoint')} is not saved any more"
    return ""


def _is_of_its_moment(line: Line, old: list[Line]) -> bool:
    """Whether a checkpoint made where the baseline makes none holds as many of the live weights as those of the baseline do."""
    usual = [each["current"] for each in old if each.get("live")]
    if not usual or not line.get("live"):
        return any(each.get("keys") == line.get("keys") for each in old)
    return line["current"] >= min(usual) and any(each.get("keys") == line["keys"] for each in old)


def _content(old: Line, new: Line, limit: float | None, *, values: bool, rescheduled: bool) -> str:
    """What differs, "" for nothing. `limit` None: the training is bitwise the same, and so must be what it saves. Without `values` only
    the kind of the contents is compared: the training was another one, by the owner's leave."""
    if old["keys"] != new["keys"]:
        lost, added = sorted(set(old["names"]) - set(new["names"])), sorted(set(new["names"]) - set(old["names"]))
        if rescheduled and not any(name.endswith("]") for name in (*lost, *added)):
            return ""  # plain values of a scheduler that the owner has exchanged by name
        parts = [f"{word} {names[0]} and {len(names) - 1} more" for word, names in (("without", lost), ("with", added)) if names]
        return f"the saved object differs: {', '.join(parts) or 'in its keys'}"
    moved = old.get("scalars") != new.get("scalars") or not values
    if moved and old.get("live") and new.get("live") == old["live"] and new["current"] < old["current"]:
        return f"{old['current']} of {old['live']} live weights are saved as they are → {new['current']}"
    if old["digest"] == new["digest"] or not values:
        return ""
    if limit is None:
        apart = _rounding(old, new)
        if apart is not None and apart <= _ROUNDED:
            return ""
        figure = "" if apart is None else f" ({apart:.2g} apart, relatively)"
        return f"other values are saved although the training is bitwise the same{figure}"
    distance = relative(math.dist(old["sketch"], new["sketch"]), old["norm"])
    return f"saved values are {distance:.2g} apart (relative L2)" if distance > limit else ""


def _only_drew(old: Line, new: Line, pair: Pair) -> bool:
    """Whether nothing differs but a random generator's state, where the owner agrees that less is drawn from it: each evaluation's loader
    draws a number, so that evaluating less often leaves another state beside the same training."""
    same = all(old.get(name) == new.get(name) for name in ("keys", "undrawn", "scalars", "current"))
    return bool(pair.bitwise and old.get("undrawn") and same and pair.agreed & {"cadence", "order"})


def _rounding(old: Line, new: Line) -> float | None:
    """How far the numbers in two saved objects are apart, each tensor beside its own size; None where more than numbers differ: counts,
    random states, or weights in training that are not saved as they are."""
    if not old.get("scaled") or not new.get("scaled") or old.get("exact") != new.get("exact") or new["current"] < old["current"]:
        return None
    ours, theirs = (struct.unpack(f"<{len(each['scaled']) // 16}d", bytes.fromhex(each["scaled"])) for each in (old, new))
    return relative(math.dist(ours, theirs), 1.0)


def _differing(pair: Pair) -> Iterator[tuple[str, Line]]:
    """`(name, the candidate's checkpoint)` of plain values that are farther apart than rounding explains; a name may come again."""
    old, new = _checkpoints(pair)
    limit, moving = _limit(pair), _moving(old)
    for before, line in _matched(pair, old, new):
        if before is None or "keys" not in line or before.get("keys") != line["keys"]:
            continue
        ours, theirs = before.get("values", {}), line.get("values", {})
        for name in sorted({*ours, *theirs}):
            if not _alike(ours.get(name), theirs.get(name), limit, counted="cadence" not in pair.agreed):
                yield name, line
        counts, others = before.get("counts", {}), line.get("counts", {})
        yield from ((name, line) for name in sorted(moving) if counts.get(name) != others.get(name))


def _moving(old: list[Line]) -> set[str]:
    """Integers such as an epoch, which change from one checkpoint of the baseline to another; others are settings of the program."""
    known: dict[tuple[str, str], set[int]] = {}
    for line in old:
        for name, number in line.get("counts", {}).items():
            known.setdefault((line["keys"], name), set()).add(number)
    return {name for (_, name), numbers in known.items() if len(numbers) > 1}


def _alike(old: list[Any] | None, new: list[Any] | None, limit: float | None, *, counted: bool) -> bool:
    """Of two `[hash, how many, norm]`, and a sketch of arrays: equal, or within `limit` where the training is not bitwise the same."""
    if old is None or new is None:
        return old is new
    if old[0] == new[0]:
        return True
    if limit is None or (counted and old[1] != new[1]):
        return False
    sketched = len(old) > 3 and len(new) > 3 and old[1] == new[1]
    return relative(math.dist(old[3], new[3]) if sketched else abs(old[2] - new[2]), old[2]) <= limit


def _torn(line: Line, stream: Stream) -> str | None:
    """What is wrong with a file that was read back, "" for nothing; None for one that was not."""
    if "unreadable" in line:
        return f"cannot be read back ({line['unreadable']})"
    before_training = line["n"] == 0 and not any(each["n"] == 0 for each in stream.checkpoints)  # nobody saw what was handed over
    if "digest" not in line or before_training:
        return None
    return "" if line["digest"] in {each.get("digest") for each in stream.checkpoints} else "holds other values than were handed over"


def _not_left(pair: Pair, kept: list[Line]) -> str:
    """A state that the baseline leaves on disk and the candidate, which has saved it too, does not."""
    made = _checkpoints(pair)[1]
    left = {line.get("digest") for line in pair.candidate.stored if line.get("left") and "unread" not in line}
    if any("unread" in line for line in pair.candidate.stored):
        return ""
    for line in kept:
        place = pair.place("baseline", line["n"])
        same = [each for each in made if pair.place("candidate", each["n"]) == place and each.get("keys") == line.get("keys")]
        digests = {each["digest"] for each in same}
        if not same or digests & left:
            continue
        when = {each["n"] for each in same}
        gone = [each for each in pair.candidate.stored if "gone" in each and each["n"] in when]
        over = [each for each in pair.candidate.stored if each.get("digest") in digests]
        if gone or over:  # it was followed: else nobody knows where it lies
            trouble = "is gone at the end" if gone else "is overwritten"
            return f"{(gone or over)[0]['target']}, saved after update {line['n']}, {trouble}; the baseline leaves it"
    return ""


def _checkpoints(pair: Pair) -> tuple[list[Line], list[Line]]:
    old = [line for line in pair.baseline.checkpoints if line["n"] <= pair.closed_on("baseline")]
    new = [_when_taken(line, old, pair) for line in pair.candidate.checkpoints if line["n"] <= pair.closed_on("candidate")]
    return old, sorted(new, key=lambda line: int(line["n"]))


def _when_taken(line: Line, old: list[Line], pair: Pair) -> Line:
    """The checkpoint; what another thread wrote counts where its contents were taken: at the baseline's newest of its kind, if equal."""
    if line.get("thread") != "other" or pair.rebatched or "keys" not in line:
        return line
    before = [each for each in old if each["n"] <= line["n"] and each.get("keys") == line["keys"]]
    newest = [each for each in before if each["n"] == before[-1]["n"]]
    same = any(
        each.get("digest") == line.get("digest") or (line.get("scalars") and each.get("scalars") == line["scalars"]) for each in newest
    )
    return {**line, "n": newest[0]["n"]} if same else line
