"""Which candidates of a plan may be tried now: not again what is known, values within bounds, nothing that the owner did not agree to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from trainflash import fidelity, verdict
from trainflash.schema import Candidate, Experiment

# A knob with several values at one place: so many are tried at most. Each costs minutes, and what the fifth adds to a value that pays
# (8 workers, then 16) is rarely more than the noise.
MOST_VALUES = 4
# A value that did not pay is tried again on top of another accepted change only where its cost has grown by this factor since: the
# bottleneck moved. Less is inside what two diagnoses of the same program differ by.
GROWN = 1.5
NO_AGREEMENT = frozenset({"same", "close"})
DECIDED = frozenset({"accepted", "rejected", "needs_agreement", "failed"})
# A finding whose likeliest candidate pays less often than this is handed to a person or an assistant as well: own, one in four.
LIKELY = 0.25


@dataclass(frozen=True)
class Choice:
    """A plan's candidates, sorted out: what may be tried, what needs the owner's agreement, and why the rest is left."""

    open: tuple[Candidate, ...]
    unagreed: tuple[Candidate, ...]
    left: tuple[tuple[Candidate, str], ...]

    @property
    def answered(self) -> frozenset[str]:
        """Findings for which a candidate waits that is likely to pay and needs nobody's agreement."""
        return frozenset(each.finding for each in self.open if each.worth is None or each.worth.chance >= LIKELY)


def choose(
    candidates: Sequence[Candidate],
    made: Sequence[Experiment],
    *,
    tip: str,
    allowed: frozenset[str],
    hopeless: frozenset[str] = frozenset(),
    finished: frozenset[int] = frozenset(),
    diff_of: Callable[[Experiment], str],
) -> Choice:
    """Sort out `candidates`, made on the commit `tip`. `made` are all experiments of this sandbox, oldest first.

    `hopeless` are findings too small to show a gain. `finished` are experiments of this search, for which an open answer counts too:
    what an earlier one left open deserves another try, whose starts then count together.
    """
    over = [one for one in made if one.decision in DECIDED or one.n in finished]
    decided = [one for one in over if not _agreed_since(one, allowed)]
    essences = {one.n: essence(diff_of(one), one) for one in decided}
    found_open, unagreed, left = [], [], []
    for each in candidates:
        why = _why_not(each, decided, essences, tip)
        if each.finding in hopeless:
            left.append((each, "its whole cost is too small for a gain that could be shown"))
        elif why:
            left.append((each, why))
        elif each.risk in NO_AGREEMENT or each.risk in allowed:
            found_open.append(each)
        else:
            unagreed.append(each)
    return Choice(tuple(found_open), tuple(unagreed), tuple(left))


def _agreed_since(one: Experiment, allowed: frozenset[str]) -> bool:
    """Whether an experiment was refused for want of an agreement alone, and the owner agrees now."""
    return bool(verdict.waits_for(one.verdict)) and verdict.may_be_timed(one.verdict.fidelity, allowed=allowed)


def _why_not(candidate: Candidate, decided: Sequence[Experiment], essences: dict[int, tuple[str, ...]], tip: str) -> str:
    """Why a candidate is not tried (again); "": nothing speaks against it."""
    own = essence(candidate.diff, candidate)
    for one in decided:
        if essences[one.n] == own and one.parent_commit == tip:
            return f"tried in experiment {one.n}: {_outcome(one)}"
    again = [one for one in decided if essences[one.n] == own]
    if again and not _grown(candidate, again[-1]):
        return f"tried in experiment {again[-1].n}: {_outcome(again[-1])}; its cost is no larger since"
    here = [one for one in decided if _same_place(one, candidate)]
    return "" if again or not here else _why_no_other_value(candidate, here)


def _why_no_other_value(candidate: Candidate, here: Sequence[Experiment]) -> str:
    """The bounded search over values: on while it pays, and never more than `MOST_VALUES`."""
    last = here[-1]
    paid = [one for one in here if one.decision == "accepted"]
    if _other_training(last) and not _less_rare(candidate, last):
        return f"another value changed the training in experiment {last.n}: {_outcome(last)}"
    if paid and candidate.risk not in NO_AGREEMENT:
        return f"experiment {paid[-1].n} changed it already; what needs agreement is changed once"
    if paid and last is not paid[-1]:
        return f"value {last.value} of experiment {last.n} paid no more on top of {paid[-1].value}"
    if _turned_back([one.value for one in paid], candidate.value):
        return f"experiment {paid[-1].n} went past that value, and it paid"
    if len({one.value for one in here}) >= MOST_VALUES:
        return f"{MOST_VALUES} values were tried"
    return ""


def _turned_back(paid: Sequence[str], value: str) -> bool:
    """Whether `value` lies behind the values that paid: a search goes on in the direction of the last two."""
    numbers, wanted = [number for each in paid if (number := _number(each)) is not None], _number(value)
    if len(numbers) < 2 or wanted is None:
        return False
    return (wanted - numbers[-1]) * (numbers[-1] - numbers[-2]) <= 0


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _same_place(one: Experiment, candidate: Candidate) -> bool:
    """The same knob in the same function of the same file; lines move when something above them is accepted."""
    if one.knob != candidate.knob or one.location is None or candidate.location is None:
        return one.knob == candidate.knob and one.location is None and candidate.location is None
    return (one.location.file, one.location.function) == (candidate.location.file, candidate.location.function)


def _other_training(one: Experiment) -> bool:
    """Whether it was refused because it trains something else, and not because it crashed or was slow: another value would too."""
    found = one.verdict.fidelity if one.verdict else None
    refused = one.decision in {"rejected", "needs_agreement"}
    return refused and found is not None and found.verdict == "changed" and "failed" not in found.changed


def _less_rare(candidate: Candidate, last: Experiment) -> bool:
    """Whether `last` did something so rarely that the whole run had none left, and the candidate does it more often."""
    found = last.verdict.fidelity if last.verdict else None
    gone = found is not None and any(check.ok is False and check.evidence.endswith(fidelity.NONE_LEFT) for check in found.checks)
    wanted, tried = _number(candidate.value), _number(last.value)
    return gone and wanted is not None and tried is not None and wanted < tried


def _grown(candidate: Candidate, before: Experiment) -> bool:
    if _other_training(before) or before.decision != "rejected" or before.saved_share is None or candidate.worth is None:
        return False
    return candidate.worth.saved_share > GROWN * before.saved_share


def _outcome(one: Experiment) -> str:
    return one.verdict.reasons[0] if one.verdict and one.verdict.reasons else one.decision


def essence(diff: str, change: Candidate | Experiment) -> tuple[str, ...]:
    """What a change removes and adds, wherever it stands: an accepted change above it moves its lines, one of the command its words.

    The same for every diff between two contents: which of equal lines counts as the added one is the choice of who wrote the diff.
    """
    lines: Counter[tuple[str, str]] = Counter()
    file = ""
    for line in diff.split("\n"):
        if line.startswith(("--- a/", "+++ b/")):
            file = line[6:]
        elif line.startswith(("+", "-")) and line not in ("--- /dev/null", "+++ /dev/null"):
            lines[file, line[1:]] += 1 if line[0] == "+" else -1
    found = tuple(sorted(f"{number:+d} {name}: {text}" for (name, text), number in lines.items() if number))
    if diff.strip() and not found:  # lines only change their places
        found = (f"moved by {change.knob} {change.value}",)
    words = (f"{word.before} -> {word.after}" for word in change.words)
    return (*found, *words, *(f"{name}={value}" for name, value in sorted(change.environment.items())))


def waiting(choice: Choice, made: Iterable[Experiment], allowed: frozenset[str], tip: str) -> list[str]:
    """What waits for the owner's agreement alone: candidates, `eval_cadence (cadence)`, and experiments, with the command that agrees.

    One that stands beneath what was accepted since has to be tried again on `tip`.
    """
    asked = [f"{each.knob} ({each.risk})" for each in choice.unagreed]
    for one in made:
        if names := verdict.waits_for(one.verdict, allowed=allowed):
            gain = f"; {one.verdict.gain:.2f} times as fast" if one.verdict and one.verdict.gain else ""
            command = f": {one.agree_command}" if one.agree_command else ""
            command = command if one.parent_commit == tip else ": to be tried again, on top of what was accepted since"
            asked.append(f"{one.knob} ({', '.join(sorted(names))}{gain}{command})")
    return sorted(set(asked))
