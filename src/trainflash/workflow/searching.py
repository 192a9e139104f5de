"""`auto`: diagnose, plan, try the most promising candidate, diagnose again, until nothing is worth another experiment.

Each stage ends with `search.json` and the experiment's own file, so a search that was killed goes on where it stood: finished
experiments are not made again, the one that was being measured keeps its starts and its check, a diagnosis of the same commit counts.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from trainflash import author, stats
from trainflash.errors import Inconclusive, ProgramFailed, UsageError
from trainflash.schema import (
    Brief,
    Candidate,
    Command,
    Diagnosis,
    Experiment,
    Plan,
    Summary,
    Verdict,
    as_changed,
    read_document,
    to_plain,
    write_document,
)
from trainflash.schema.authors import Attempt
from trainflash.schema.searches import Ending, Search
from trainflash.workflow import authoring, choosing, diagnosing, optimizing, ordering, verifying
from trainflash.workflow.choosing import Choice
from trainflash.workflow.session import Session, now_utc
from trainflash.workflow.verifying import Demands

LEAST_LOOP_S = 60.0  # a diagnosis, a short fidelity run and four starts of even a small program
DIAGNOSIS_PART = 0.1  # of the budget; a diagnosis of less than 15 s sees no epoch boundary of most programs
LEAST_DIAGNOSIS_S = 15.0
CEILINGS_PART = 0.1  # of the budget, for measuring ceilings where they decide what is tried first; below 20 s none is measured
LEAST_CEILINGS_S = 20.0
CONTESTED = 0.5  # a bound overstates: the second finding may well be the first if its bound is so near
TOGETHER_MARGIN = 1.2  # what the verdict on all together may cost beyond the dearest experiment
# Of what is left, for one of several candidates, where that buys a verdict on a change that does nothing (it takes 6 to 7 starts): a gain
# inside the noise must not eat the time of the others. Where it buys less, half a verdict on each would be none on any.
MOST_OF_THE_REST = 0.6
# Of the budget, for judging what an author writes: without it the search before it would use all of it, however little it still finds.
AUTHOR_PART = 0.4
FAR_MORE = 2.0  # own: times the saving, from which on an author's patch is worth its money before a setting
OVERRUN = 0.8  # of what was kept back for the author, that has to be left: an experiment before may have taken a little more than its share
FAILURES_IN_A_ROW = 2  # the owner's own program failed so often: no experiment can tell anything


@dataclass(frozen=True)
class Outcome:
    """What a search came to. `combined` is the verdict on all accepted experiments together against the very first baseline."""

    experiments: tuple[Experiment, ...]
    combined: Verdict | None
    before: Diagnosis
    after: Diagnosis | None
    spent_s: float
    ending: Ending
    stopped_because: str
    briefs: tuple[Brief, ...] = ()  # what is left to a person or an assistant
    attempts: tuple[Attempt, ...] = ()  # of the author


def auto(
    session: Session,
    command: Command,
    demands: Demands,
    *,
    budget_s: float,
    writer: author.Author | None = None,
    limits: author.Limits | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Search until the program is healthy, nothing is left, a person is needed, or `budget_s` seconds are spent.

    With a `writer` what settings and transforms leave open is handed to it, within its `limits`; the time that it takes to write is not
    the budget's.

    An unfinished search with the same command and demands goes on; the budget is that of this call. Raises `UsageError` for a budget that
    buys nothing and for anything that makes the sandbox unusable, `ProgramFailed` when the program as it stands cannot be diagnosed.
    """
    refuse_too_little(budget_s)
    session.rest()  # a killed command may have left a candidate in worktree/
    verifying.complete_log(session)
    return _Loop(session, command, demands, budget_s, clock, writer, limits or author.Limits()).run()


def contested(diagnosis: Diagnosis) -> bool:
    """Whether measured ceilings could change what is tried first: the two largest costs are near, and other knobs answer them."""
    large = sorted((each for each in diagnosis.findings if each.knobs), key=ordering.saved_share, reverse=True)
    if diagnosis.abstained or not large or diagnosis.findings[0].kind == "compute":
        return False
    rivals = [each for each in large[1:] if each.knobs[0] != large[0].knobs[0]]
    near = [each for each in rivals if ordering.saved_share(each) >= CONTESTED * ordering.saved_share(large[0])]
    return any(each.ceiling is None or each.ceiling.how == "bound" for each in (large[0], *near)) and bool(near)


def refuse_too_little(budget_s: float) -> None:
    """Raises `UsageError` for a budget that buys no experiment; to be asked before a sandbox is made."""
    if budget_s < LEAST_LOOP_S:
        raise UsageError(
            f"a budget of {budget_s:.0f} s is too small for the loop", f"give at least {LEAST_LOOP_S:.0f}s; `20m` is twenty minutes"
        )


@dataclass
class _Loop:
    session: Session
    command: Command
    demands: Demands
    budget_s: float
    clock: Callable[[], float]
    writer: author.Author | None = None
    limits: author.Limits = field(default_factory=author.Limits)
    writing: authoring.Writing | None = field(default=None, init=False)
    search: Search = field(init=False)
    began: float = field(init=False)
    reserved_s: float = field(default=0.0, init=False)  # for judging what the author writes
    failures: list[str] = field(default_factory=list, init=False)  # of the program without the change, in a row
    plan: Plan | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()
        self.demands = replace(self.demands, ask=False)
        self.search = self._search()
        if self.writer is not None:
            since = self.search.began_utc
            self.writing = authoring.Writing(self.session, self.command, self.writer, self.limits, self.demands.allowed, since)

    def run(self) -> Outcome:
        diagnosis, summary = self._diagnosed()
        if not self.search.first_run:
            self._save(first_run=diagnosis.run)
        first, after = self._first(diagnosis), None
        self._go_on()
        while True:
            if self.session.tip() not in self.search.diagnosed:  # something was accepted: the bottleneck moves
                try:
                    diagnosis, summary = self._diagnosed()
                except ProgramFailed as failed:
                    ending = "needs a person", f"the program with what was accepted failed when it was diagnosed: {failed.message}"
                    break
            after = diagnosis if self.session.accepted() else None
            self.reserved_s = AUTHOR_PART * self.budget_s if self.writing is not None and self.writing.may_go_on() else 0.0
            self.plan, choice = optimizing.plan(
                self.session, diagnosis, summary, self.command, allowed=self.demands.allowed, finished=frozenset(self.search.experiments)
            )
            ending = self._ending(diagnosis) or self._nothing_open(choice) or self._spent(choice)
            if ending is not None:
                again = self._worth_more(ending[0])
                if again is None:
                    self.reserved_s = 0.0  # what was kept back for the author's patches is free for them now, and then for what stayed open
                    if self._written(diagnosis, ending[0]):
                        continue
                    again = self._worth_more(ending[0])
                if again is None:
                    ending = self._ended(ending)
                    break
                self._save(gone_on_with=(*self.search.gone_on_with, again.n))
                self._measure(again, replace(self._share(several=False), take_up=True, ask=True))
                continue
            if self._author_first(diagnosis, choice):
                self.reserved_s = 0.0
                if self._written(diagnosis, ""):
                    continue
            share = self._share(several=len(choice.open) > 1)
            self._measure(self._made(choice.open[0], share), share)
        combined = self._together()
        self.session.rest()
        self._save(ending=ending[0], stopped_because=ending[1])
        return Outcome(
            experiments=tuple(self.session.experiment(n) for n in self.search.experiments),
            combined=combined,
            before=first,
            after=after,
            spent_s=round(self.clock() - self.began, 1),
            ending=ending[0],
            stopped_because=ending[1],
            briefs=self.plan.briefs if self.plan and ending[0] != "healthy" else (),
            attempts=self.writing.attempts() if self.writing else (),
        )

    def _search(self) -> Search:
        """The unfinished search of this question, else a new one."""
        held_to = asdict(replace(self.demands, budget_s=0.0, resume=False, take_up=False)) | {"allowed": sorted(self.demands.allowed)}
        question = json.dumps([to_plain(self.command), sorted((name, repr(value)) for name, value in held_to.items())])
        asked = hashlib.sha256(question.encode()).hexdigest()[:16]
        known = read_document(Search, self.session.search_path) if self.session.search_path.is_file() else None
        if known is not None and not known.ending and (known.asked, known.base_ref) == (asked, self.session.sandbox.base_ref):
            self.session.on_progress(f"going on with the search of {known.began_utc}", 0, 0)
            return known
        earlier = max((each.n for each in self.session.experiments()), default=0)
        return Search(asked, self.session.sandbox.base_ref, now_utc(), earlier)

    def _save(self, **changes: object) -> None:
        self.search = replace(self.search, **changes)  # type: ignore[arg-type]
        write_document(self.session.search_path, self.search)

    def _left(self) -> float:
        return self.budget_s - (self.clock() - self.began)

    def _diagnosed(self) -> tuple[Diagnosis, Summary]:
        """The diagnosis of what is accepted now: made before the search was killed, or made now."""
        tip = self.session.tip()
        run = self.search.diagnosed.get(tip)
        known = self.session.diagnosis(run) if run else None
        if known is None:
            command = as_changed(self.command, self.session.accepted())
            known = diagnosing.diagnose(
                self.session,
                command,
                seconds=max(LEAST_DIAGNOSIS_S, min(diagnosing.SECONDS, DIAGNOSIS_PART * self.budget_s)),
                give_up_s=max(LEAST_DIAGNOSIS_S, self._left()),
                online=self.demands.online,
                writable=self.demands.writable,
            )
            seconds = CEILINGS_PART * self.budget_s
            if seconds >= LEAST_CEILINGS_S and contested(known[0]):
                options = {"online": self.demands.online, "writable": self.demands.writable}
                known = diagnosing.with_ceilings(self.session, command, known[0].run, total_s=seconds, **options)
            self._save(diagnosed={**self.search.diagnosed, tip: known[0].run})
        return known

    def _first(self, diagnosis: Diagnosis) -> Diagnosis:
        known = self.session.diagnosis(self.search.first_run)
        return known[0] if known else diagnosis

    def _go_on(self) -> None:
        """Measure what was being measured, or was just made, when the search was killed, if it still stands on what is accepted."""
        one = next((each for each in reversed(self.session.experiments()) if self._ours(each)), None)
        if one is None:
            return
        if one.decision == "pending" and one.parent_commit == self.session.tip():
            self._measure(one, replace(self._share(several=True), take_up=True))
        elif one.decision != "pending":  # judged, but killed before it was written down as finished
            self._finished(one.n)

    def _ours(self, one: Experiment) -> bool:
        made_now = one.decision == "pending" and one.n > self.search.earlier and one.command == self.command
        return one.n not in self.search.experiments and (one.n == self.search.current or made_now)

    def _worth_more(self, ending: Ending) -> Experiment | None:
        """Where nothing else is open and time is left: the experiment on this state that ended open with the largest gain so far.

        Its starts count on. Each is gone on with once: what then stays open needs a quieter machine. After these come those that only an
        agreement is missing for, which were checked and not timed: the owner is asked with their speed.
        """
        price = ordering.price(self.session)
        if ending not in {"needs a person", "nothing left"} or self.failures or self._left() - self._kept_back() < price.least_s:
            return None
        here = [
            one
            for one in map(self.session.experiment, self.search.experiments)
            if one.parent_commit == self.session.tip() and one.n not in self.search.gone_on_with and one.verdict is not None
        ]
        promising = [one for one in here if one.decision == "inconclusive" and one.verdict.gain > self.demands.min_gain]
        untimed = [one for one in here if one.decision == "needs_agreement" and one.verdict.speedup is None]
        return max(promising, key=lambda one: one.verdict.gain, default=next(iter(untimed), None))

    def _author_first(self, diagnosis: Diagnosis, choice: Choice) -> bool:
        """Whether the time does not suffice for the next candidate and the author, and no candidate answers what costs far more than it."""
        first = choice.open[0]
        if self.writing is None or self.writing.ended or not self.writing.may_go_on() or first.worth is None:
            return False
        if self._left() - self._kept_back() >= (1 + TOGETHER_MARGIN) * first.worth.cost_s:
            return False
        answered = {each.finding for each in choice.open}
        larger = [ordering.saved_share(each) for each in diagnosis.findings if each.kind not in answered]
        return max(larger, default=0.0) >= FAR_MORE * first.worth.saved_share

    def _written(self, diagnosis: Diagnosis, ending: str) -> bool:
        """Where settings and transforms are at their end: one more attempt of the author, and its patch judged; False: there is none."""
        if self.writing is None or self.plan is None or diagnosis.abstained or self.failures or ending == "healthy":
            return False
        if self._left() - self._kept_back() < min(ordering.price(self.session).least_s, OVERRUN * AUTHOR_PART * self.budget_s):
            self.writing.ended = self.writing.ended or f"the budget of {self.budget_s:.0f} s leaves no time to judge what an author writes"
            return False
        began = self.clock()
        attempt = self.writing.next(diagnosis, self.plan)
        self.began += self.clock() - began
        if attempt is None:
            return False
        if attempt.outcome == "patch":
            demands = self._share(several=self.writing.may_go_on())
            try:
                one = optimizing.make(self.session, self.writing.candidate(attempt), self.command, demands)
            except UsageError as bad:
                self.writing.useless(attempt, bad.message)
                return True
            self.writing.tried(attempt, one.n)
            self._measure(one, demands)
        return attempt.outcome != "ended"

    def _ended(self, ending: tuple[Ending, str]) -> tuple[Ending, str]:
        """The end of the search, with what the author's part of it came to."""
        if self.writing is None or not self.writing.ended:
            return ending
        return ending[0], f"{self.writing.ended}; {ending[1]}"

    def _made(self, candidate: Candidate, demands: Demands) -> Experiment:
        """The candidate as an experiment. It was planned on this very commit: one that does not apply is a fault, and is told by name."""
        try:
            return optimizing.make(self.session, candidate, self.command, demands)
        except UsageError as bad:
            raise UsageError(f"{candidate.knob} = {candidate.value}: {bad.message}", bad.mend) from None

    def _measure(self, one: Experiment, demands: Demands) -> None:
        self._save(current=one.n)
        self.session.on_progress(f"experiment {one.n}: {one.knob} = {one.value}, for {one.finding}", 0, 0)
        try:
            optimizing.measure(self.session, one.n, demands)
            self.failures = []
        except ProgramFailed as failed:  # the program without the change: not the candidate's fault, and perhaps not the program's either
            self.failures.append(failed.message)
            self.session.on_progress(f"experiment {one.n} is left open: {failed.message}", 0, 0)
        self._finished(one.n)

    def _finished(self, n: int) -> None:
        self._save(current=None, experiments=tuple(dict.fromkeys((*self.search.experiments, n))))

    def _share(self, *, several: bool) -> Demands:
        """What the next experiment may spend of what the verdict on all together leaves; `several`: others wait for their turn."""
        free, price = self._left() - self._kept_back(), ordering.price(self.session)
        enough = price.check_s + stats.LOOKS[2] * price.start_s
        if several and price.measured and MOST_OF_THE_REST * free >= enough:
            free *= MOST_OF_THE_REST
        return replace(self.demands, budget_s=max(free, verifying.LEAST_BUDGET_S))

    def _kept_back(self) -> float:
        """Seconds for the verdict on what was accepted together, once there is an accepted experiment that another can join, and for what
        the author will write.
        """
        return self.reserved_s + TOGETHER_MARGIN * max((one.verdict.spent_s for one in self.session.accepted() if one.verdict), default=0.0)

    def _ending(self, diagnosis: Diagnosis) -> tuple[Ending, str] | None:
        if diagnosis.abstained:
            return "needs a person", f"the diagnosis abstains: {diagnosis.abstained}"
        if diagnosis.findings and diagnosis.findings[0].kind == "compute":
            return "healthy", "healthy: the time goes into the training itself"
        if len(self.failures) >= FAILURES_IN_A_ROW:
            return "needs a person", f"{len(self.failures)} experiments in a row could not be judged: {self.failures[-1]}"
        return None

    def _nothing_open(self, choice: Choice) -> tuple[Ending, str] | None:
        if choice.open:
            return None
        if self.failures:
            return "needs a person", f"the last experiment could not be judged: {self.failures[-1]}"
        if waiting := self._waiting(choice):
            return "needs a person", f"needs the owner's agreement (--allow): {', '.join(waiting)}"
        if self.plan and self.plan.briefs:
            kinds = ", ".join(dict.fromkeys(brief.finding for brief in self.plan.briefs))
            what = "no knob is left for" if self.search.experiments else "no knob fits"
            return "needs a person", f"{what} {kinds}; `trainflash optimize plan` has the briefs for a person or an assistant"
        return "nothing left", "nothing left to try that these knobs could do"

    def _waiting(self, choice: Choice) -> list[str]:
        made = map(self.session.experiment, self.search.experiments)
        return choosing.waiting(choice, made, self.demands.allowed, self.session.tip())

    def _spent(self, choice: Choice) -> tuple[Ending, str] | None:
        price = ordering.price(self.session)
        if self._left() - self._kept_back() >= (price.least_s if price.measured else verifying.LEAST_BUDGET_S):
            return None
        rest = f"{len(choice.open)} more could be tried"
        return "budget", f"what is left of the budget of {self.budget_s:.0f} s is too little for another experiment ({rest})"

    def _together(self) -> Verdict | None:
        demands = replace(self.demands, budget_s=max(self._left(), verifying.LEAST_BUDGET_S), take_up=True)
        try:
            return verifying.verify_combination(self.session, self.command, demands)
        except (ProgramFailed, Inconclusive) as bad:
            return Verdict(verdict="inconclusive", speedup=None, fidelity=None, starts=0, reasons=(bad.message,))
