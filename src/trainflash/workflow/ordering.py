"""Which candidate first: what it could save × how likely that is ÷ what finding out costs; system fixes before numerics.

The figures are those of the plan (`Candidate.worth`). Within one finding the same order is that of its `knobs`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainflash import knobs, stats
from trainflash.knobs.facts import Facts
from trainflash.schema import Candidate, Diagnosis, Finding, LogEntry, Refusal, Runs, Summary, Worth, read_document
from trainflash.schema.findings import Change
from trainflash.workflow.session import Session

# What a program's own log says about a knob counts against the declared chance as if that rested on so many experiments: two failures
# halve a chance, a first one does not bury a knob that has several values.
DECLARED_WEIGHT = 2.0
# A knob that only answers the kind of finding, but that neither the evidence of this run nor the source at its line points at.
UNNAMED = 0.5
# Without an agreement to "numerics", a change that rounds otherwise is accepted only where it comes out bitwise the same.
ROUNDING_UNAGREED = 0.5
NUMERICS = frozenset({"numerics", "precision"})  # tried after all others: a rounding error is harder to judge than a waiting time
# Until this sandbox has measured its own: one start of a pair and one check of the training of a small program, and the noise of a start
# on a busy machine (bench/RESULTS.md: sd 1 to 7 %). They weigh candidates against each other; budgets use what was spent.
START_S, CHECK_S, NOISE_SD = 15.0, 30.0, 0.05


@dataclass(frozen=True)
class Price:
    """What experiments cost here: seconds of one start and of one check, and the noise (sd of y) of a start."""

    start_s: float = START_S
    check_s: float = CHECK_S
    noise_sd: float = NOISE_SD
    measured: bool = False  # False: nothing was timed here yet

    @property
    def least_s(self) -> float:
        """Seconds below which no experiment can come to a verdict."""
        return self.check_s + stats.LEAST_STARTS * self.start_s

    def of(self, gain: float) -> float:
        """Seconds that an experiment takes whose speed-up is `gain`: a large one is clear after few starts."""
        needed = stats.starts_needed(max(self.noise_sd, stats.SD_FLOOR), gain) or stats.LOOKS[-1]
        starts = next((look for look in stats.LOOKS if look >= needed), stats.LOOKS[-1])
        return self.check_s + starts * self.start_s


def price(session: Session) -> Price:
    """What the comparisons of this sandbox have cost."""
    paths = sorted((session.directory / "pairs").glob("*/runs.json"))
    pairs = [read_document(Runs, path).starts for path in paths]
    spent = [start.spent_s for starts in pairs for start in starts if start.spent_s]
    if not spent:
        return Price()
    start_s = max(statistics.median(spent), 1.0)
    checks = [
        max(0.0, one.verdict.spent_s - one.verdict.starts * start_s)
        for one in session.experiments()
        if one.verdict and one.verdict.spent_s and one.verdict.starts
    ]
    known = [[start.y for start in starts if start.y is not None] for starts in pairs]
    noise = [statistics.stdev(ys) for ys in known if len(ys) >= stats.LEAST_STARTS]
    return Price(start_s, statistics.median(checks) if checks else CHECK_S, statistics.median(noise) if noise else NOISE_SD, True)


def record(entries: Iterable[LogEntry]) -> dict[str, tuple[int, int]]:
    """By knob: how many of its experiments were accepted, and how many were decided. What was judged again counts once, as judged last."""
    last: dict[tuple[str, int], LogEntry] = {}
    sandbox = ""
    for entry in entries:
        if entry.kind == "sandbox":
            sandbox = entry.at_utc
        if entry.kind == "experiment" and entry.experiment is not None:
            last[sandbox, entry.experiment] = entry
    found: dict[str, tuple[int, int]] = {}
    for entry in last.values():
        if entry.decision in {"accepted", "rejected"}:
            accepted, decided = found.get(entry.knob, (0, 0))
            found[entry.knob] = accepted + (entry.decision == "accepted"), decided + 1
    return found


def chance(declared: float, known: tuple[int, int]) -> float:
    """The declared chance, corrected by what this program has shown: (accepted, decided)."""
    accepted, decided = known
    return (DECLARED_WEIGHT * declared + accepted) / (DECLARED_WEIGHT + decided)


def saved_share(finding: Finding) -> float:
    """Share of the wall time that is gone when this cost is gone."""
    return 1 - 1 / finding.ceiling.speedup if finding.ceiling else finding.share


@dataclass(frozen=True)
class Order:
    """How candidates of one diagnosis are ordered. `named` are the knobs that the rules name for each kind, `also` those beside them."""

    named: Mapping[str, tuple[str, ...]]
    also: Mapping[str, tuple[str, ...]]
    shares: Mapping[str, float]
    known: Mapping[str, tuple[int, int]]
    price: Price
    allowed: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, diagnosis: Diagnosis, entries: Iterable[LogEntry] = (), price: Price | None = None, allowed: frozenset[str] = frozenset()
    ) -> Order:
        shares: dict[str, float] = {}
        named: dict[str, tuple[str, ...]] = {}
        also: dict[str, tuple[str, ...]] = {}
        for finding in diagnosis.findings:
            shares[finding.kind] = max(shares.get(finding.kind, 0.0), saved_share(finding))
            named[finding.kind] = tuple(dict.fromkeys((*named.get(finding.kind, ()), *finding.knobs)))
            also[finding.kind] = tuple(dict.fromkeys((*also.get(finding.kind, ()), *finding.also)))
        return cls(named, also, shares, record(entries), price or Price(), allowed)

    def worth(self, knob: str, kind: str, risk: Change) -> Worth:
        named = self.named.get(kind, ())
        likely = self._chance(knob)
        if knob not in named and not _shown(knob):
            likely = UNNAMED * min([likely, *map(self._chance, named)])
        likely *= ROUNDING_UNAGREED if risk == "close" and not self.allowed & NUMERICS else 1.0
        share = min(max(self.shares.get(kind, 0.0), 0.0), 0.999)
        return Worth(round(share, 4), round(likely, 4), round(self.price.of(1 / (1 - share)), 1))

    def _chance(self, knob: str) -> float:
        known = knobs.by_name().get(knob)
        return chance(known.chance if known else knobs.Knob.chance, self.known.get(knob, (0, 0)))

    def sorted(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """`candidates` with their worth, best first; equal ones as their finding names them, else as they were."""
        weighed = [replace(each, worth=self.worth(each.knob, each.finding, each.risk)) for each in candidates]
        return tuple(sorted(weighed, key=lambda each: (*_key(each.risk, each.worth), self._place(each))))

    def telling(self, refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
        """`refusals`, those first whose knob could have brought most; those last that have nothing to be about."""

        def weight(each: Refusal) -> tuple[bool, float]:
            likely = self._chance(each.knob) * (1.0 if each.knob in self.named.get(each.finding, ()) else UNNAMED)
            return each.moot, -self.shares.get(each.finding, 0.0) * likely

        return tuple(sorted(refusals, key=weight))

    def _place(self, candidate: Candidate) -> int:
        listed = (*self.named.get(candidate.finding, ()), *self.also.get(candidate.finding, ()))
        return listed.index(candidate.knob) if candidate.knob in listed else len(listed)


def _key(risk: Change, worth: Worth | None) -> tuple[bool, float]:
    return risk in NUMERICS, -(worth.score if worth else 0.0)


def with_knobs(diagnosis: Diagnosis, summary: Summary, entries: Iterable[LogEntry] = ()) -> Diagnosis:
    """`diagnosis` whose findings name the knobs that answer them in this run, in the order in which a plan would try them.

    What the source says of a knob shows only in the plan: there some may be missing, none stands elsewhere.
    """
    order = Order.of(diagnosis, entries)
    found = []
    for finding in diagnosis.findings:
        facts = Facts(summary, finding)
        fitting = [knob for knob in knobs.catalogue() if all(condition.holds(facts) for condition in knob.requires)]
        named = [knob for name in finding.knobs for knob in fitting if knob.name == name]
        others = [knob for knob in fitting if finding.kind in knob.answers and knob not in named]
        found.append(replace(finding, knobs=_best_first(named, finding, facts, order), also=_best_first(others, finding, facts, order)))
    return replace(diagnosis, findings=tuple(found))


def _best_first(fitting: list[knobs.Knob], finding: Finding, facts: Facts, order: Order) -> tuple[str, ...]:
    def key(knob: knobs.Knob) -> tuple[bool, float]:
        heavier = (other.risk for other in knob.risk_when if all(condition.holds(facts) for condition in other.when))
        risk = next(heavier, knob.risk)
        return _key(risk, order.worth(knob.name, finding.kind, risk))

    return tuple(knob.name for knob in sorted(fitting, key=key))


def _shown(knob: str) -> bool:
    known = knobs.by_name().get(knob)
    return known is not None and known.shown
