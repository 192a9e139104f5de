"""The author's part of a search: it is asked about the largest open cost, once, and once more with the reason of the refusal.

Each attempt is a folder `authors/<n>`: the brief, what was printed, the patch, and `attempt.json`, which is written when it is over; one
that was cut off has none and is asked again. Nothing here judges: a patch becomes an experiment like any other.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainflash import author
from trainflash.schema import Candidate, Command, Diagnosis, Finding, LogEntry, Plan, read_document, write_document
from trainflash.schema.authors import Attempt
from trainflash.workflow import briefing, choosing, optimizing
from trainflash.workflow.session import Session, now_utc

ATTEMPTS_AT_ONE_PLACE = 2
LEAST_DOLLARS = 0.01
KNOB = "author"
_PATCH = "change.diff"


@dataclass
class Writing:
    """An author at work in the search that began at `since` (UTC): the attempts made from then on are its own."""

    session: Session
    command: Command
    author: author.Author
    limits: author.Limits
    allowed: frozenset[str]
    since: str
    ended: str = field(default="", init=False)  # why it is asked no more

    @property
    def folder(self) -> Path:
        return self.session.directory / "authors"

    def attempts(self) -> tuple[Attempt, ...]:
        """Those of this search, oldest first."""
        return tuple(each for each in all_attempts(self.session) if each.at_utc >= self.since)

    def may_go_on(self) -> bool:
        """Whether the limits leave another attempt; `ended` says why not."""
        if not self.ended and len(self.attempts()) >= self.limits.attempts:
            self.ended = f"--author {self.author.name}: its {self.limits.attempts} attempts are used"
        if not self.ended and self._dollars() < LEAST_DOLLARS:
            self.ended = f"--author {self.author.name}: its budget of ${self.limits.dollars:.2f} is spent"
        return not self.ended

    def next(self, diagnosis: Diagnosis, plan: Plan) -> Attempt | None:
        """One more attempt, made and written down; None where nothing is left to ask, or nobody who could answer.

        Raises `UsageError` where nothing protects the project; Ctrl-C leaves the attempt without a document.
        """
        for each in self.attempts():
            if self._unused(each):  # killed between the answer and its experiment, or what it was written down as
                if (known := self._became(each)) is None:
                    return each
                self.tried(each, known)
        if not self.may_go_on():
            return None
        for finding in briefing.targets(self.session, diagnosis, self.command):
            done = [each for each in self.attempts() if self._about(each, finding)]
            if len(done) < ATTEMPTS_AT_ONE_PLACE and not self._settled(done):
                return self._ask(diagnosis, plan, finding, done)
        return None

    def candidate(self, attempt: Attempt) -> Candidate:
        """The patch of an attempt, to be tried."""
        said = next((line.strip() for line in attempt.words.splitlines() if line.strip()), "")
        return Candidate(
            knob=KNOB,
            value=attempt.author,
            finding=attempt.finding,
            location=attempt.location,
            risk="same",
            diff=self._diff(attempt),
            why=f"written by {attempt.author}{f', model {attempt.model}' if attempt.model else ''}{f': {said[:160]}' if said else ''}",
        )

    def tried(self, attempt: Attempt, experiment: int) -> None:
        """Write down which experiment the patch of an attempt became."""
        self._save(replace(attempt, experiment=experiment))

    def useless(self, attempt: Attempt, reason: str) -> None:
        """Write down that the patch of an attempt could not be made an experiment."""
        self._save(replace(attempt, outcome="failed", reason=reason))

    def _ask(self, diagnosis: Diagnosis, plan: Plan, finding: Finding, done: Sequence[Attempt]) -> Attempt:
        last = done[-1] if done else None
        refused, diff = (self._why(last), self._diff(last)) if last else ("", "")
        self.session.take("candidate", self.session.tip())
        made = briefing.whole(
            self.session, diagnosis, self.command, finding, plan=plan, allowed=self.allowed, refused=refused, refused_diff=diff
        )
        task, n = briefing.task(made), self._fresh()
        again = "again, with the reason of the refusal, " if last else ""
        place = f" at {finding.location}" if finding.location else ""
        what = f"{self.author.name} is asked {again}about {finding.kind}{place}"
        self.session.on_progress(what, 0, 0)
        answer = author.write(
            self.session.sandbox,
            self.author,
            task,
            self.folder / str(n),
            replace(self.limits, dollars=self._dollars()),
            on_wait=lambda seconds: self.session.on_progress(what, round(seconds), round(60 * self.limits.minutes)),
            say=lambda line: self.session.on_progress(line, 0, 0),
        )
        (self.folder / str(n) / _PATCH).write_bytes(answer.diff.encode("utf-8", "surrogateescape"))
        attempt = Attempt(
            n=n,
            at_utc=now_utc(),
            author=self.author.name,
            command=answer.command,
            parent_commit=self.session.tip(),
            finding=finding.kind,
            location=finding.location,
            brief_digest=briefing.digest(task),
            outcome=answer.outcome,
            reason=answer.reason,
            model=answer.model,
            cost_usd=answer.cost_usd,
            minutes=round(answer.minutes, 3),
            words=answer.words,
        )
        self.session.log(entry_of(attempt))
        self._save(attempt)
        if answer.outcome == "ended":
            self.ended = f"--author {self.author.name}: {answer.reason}"
        if answer.reason:
            self.session.on_progress(f"no answer of {self.author.name}: {answer.reason}", 0, 0)
        return attempt

    def _about(self, attempt: Attempt, finding: Finding) -> bool:
        """Whether an attempt was about this finding, on what is accepted now."""
        where, at = attempt.location, finding.location
        same = where == at or (where is not None and at is not None and (where.file, where.function) == (at.file, at.function))
        return attempt.parent_commit == self.session.tip() and attempt.finding == finding.kind and same

    def _settled(self, done: Sequence[Attempt]) -> bool:
        """Whether asking again would not help: the last answer was no refusal, but lacked evidence."""
        if not done or done[-1].experiment is None:
            return False
        return self.session.experiment(done[-1].experiment).decision not in {"rejected", "needs_agreement", "failed"}

    def _unused(self, attempt: Attempt) -> bool:
        return attempt.outcome == "patch" and attempt.experiment is None and attempt.parent_commit == self.session.tip()

    def _became(self, attempt: Attempt) -> int | None:
        """The experiment that was made of an attempt's patch, where it was not written down."""
        wanted = choosing.essence(self._diff(attempt), self.candidate(attempt))
        mine = (one for one in self.session.experiments() if one.knob == KNOB and one.parent_commit == attempt.parent_commit)
        return next((one.n for one in mine if choosing.essence(optimizing.diff_of(self.session, one), one) == wanted), None)

    def _why(self, attempt: Attempt) -> str:
        if attempt.experiment is None:
            return attempt.reason
        judged = self.session.experiment(attempt.experiment).verdict
        return briefing.why_refused(judged) if judged else "it could not be judged"

    def _diff(self, attempt: Attempt) -> str:
        path = self.folder / str(attempt.n) / _PATCH
        return path.read_bytes().decode("utf-8", "surrogateescape") if path.is_file() else ""

    def _dollars(self) -> float:
        return self.limits.dollars - sum(each.cost_usd or 0.0 for each in self.attempts())

    def _fresh(self) -> int:
        return 1 + max((int(path.name) for path in self.folder.glob("[0-9]*")), default=0)

    def _save(self, attempt: Attempt) -> None:
        write_document(self.folder / str(attempt.n) / "attempt.json", attempt)


def all_attempts(session: Session) -> tuple[Attempt, ...]:
    """All finished attempts of authors in this sandbox, oldest first."""
    paths = (session.directory / "authors").glob("*/attempt.json")
    return tuple(sorted((read_document(Attempt, path) for path in paths), key=lambda attempt: attempt.n))


def entry_of(attempt: Attempt) -> LogEntry:
    """The log's entry of one attempt."""
    place = f" at {attempt.location}" if attempt.location else ""
    return LogEntry(
        kind="author",
        at_utc=attempt.at_utc,
        what=f"{attempt.author}, asked about {attempt.finding}{place}",
        knob=KNOB,
        value=attempt.author,
        finding=attempt.finding,
        command=shlex.join(attempt.command),
        reasons=(attempt.reason,) if attempt.reason else (),
        decision={"patch": "answered"}.get(attempt.outcome, attempt.outcome),
        model=attempt.model,
        cost_usd=attempt.cost_usd,
        minutes=attempt.minutes,
        brief_digest=attempt.brief_digest,
    )
