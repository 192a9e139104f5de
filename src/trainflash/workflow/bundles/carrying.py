"""Does a verdict of another machine hold here? The same comparison is run here, and its own figures alone decide.

Of a bundle only the diff runs, and only in the sandbox; its command is compared with the one that was typed here, and never run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from trainflash import sandbox as sandboxes
from trainflash.bench import fingerprint
from trainflash.errors import UsageError
from trainflash.sandbox import refs
from trainflash.schema import Bundle, Carried, Command, Compared, Verdict, Verified
from trainflash.workflow import states
from trainflash.workflow.bundles import contents
from trainflash.workflow.session import Session
from trainflash.workflow.states import Pair
from trainflash.workflow.verifying import Demands


def refuse_undecided(bundle: Bundle) -> None:
    """Raises `UsageError` where there is nothing to carry, before anything runs."""
    if bundle.verdict.verdict == "inconclusive":
        why = bundle.verdict.reasons[0] if bundle.verdict.reasons else "no reason is given"
        raise UsageError(
            f"the bundle's own verdict is inconclusive: {why}", "verify it where it was made with more --budget, then bundle it"
        )


def as_there(demands: Demands, bundle: Bundle) -> Demands:
    """The demands of this comparison: tolerance, metric and agreements are the bundle's, for it is the same question."""
    claim = bundle.claim
    return replace(
        demands,
        tolerance=claim.tolerance,
        min_gain=claim.min_gain,
        allowed=frozenset(claim.allowed),
        metric=claim.metric,
        metric_tolerance=claim.metric_tolerance,
    )


def pair(session: Session, bundle: Bundle, baseline: str | None, command: Command) -> Pair:
    """The bundle's two states in this sandbox: on `baseline`, else on the commit that it was made on, else on the project as it is now.

    Raises `UsageError` for a diff that does not apply there, and a command without the words that the change is about.
    """
    claim = bundle.claim
    name = baseline or _known(session, claim.compared.baseline.commit)
    old = states.baseline_of(session, name)
    session.take("candidate", old.commit)
    try:
        said = f"the bundle's change on {old.state}"
        made = sandboxes.commit_diff(session.sandbox, bundle.diff, said) if bundle.diff.strip() else None
        commit = made or sandboxes.commit_nothing(session.sandbox, said)
    except UsageError as bad:
        mend = f"name the state it was made on, {claim.compared.baseline}, as it is called here: --baseline REF"
        raise UsageError(f"the bundle's change on {old.state}: {bad.message}", mend) from None
    typed = replace(command, env={**claim.baseline.env, **command.env})
    changed = replace(typed.with_words(claim.words), env={**claim.candidate.env, **command.env})
    new = replace(claim.compared.candidate, tree=refs.tree_of(session.sandbox, commit), commit=None)
    states.refuse_missing(session, (old, states.Held(new, commit)), command)
    about = Compared(old.state, new, states.shown(command))
    return Pair(about, (old.commit, commit), (typed, changed), words=claim.words)


def carried(bundle: Bundle, here: Verified, command: Command) -> Carried:
    """Whether what was found here is what the bundle says. Only the two verdicts are held against each other, no figure."""
    claim = bundle.claim
    return Carried(
        answer=answer(bundle.verdict, here.verdict),
        digest=bundle.digest,
        there=bundle.verdict,
        machine=claim.machine,
        compared=claim.compared,
        differs=tuple(_differences(bundle, here, command)),
    )


def answer(there: Verdict, here: Verdict) -> Literal["carries over", "does not", "undecided"]:
    """`undecided` where either machine could not tell."""
    if "inconclusive" in {there.verdict, here.verdict}:
        return "undecided"
    return "carries over" if there.verdict == here.verdict else "does not"


def _differences(bundle: Bundle, here: Verified, command: Command) -> list[str]:
    claim, found = bundle.claim, []
    old, new = claim.compared.baseline, here.compared.baseline
    if old.tree != new.tree and (old.commit is None or old.commit != new.commit):
        found.append(f"the baseline was {old}, is {new}, whose files differ")
    words = contents.words_of(command)
    if words[1:] != claim.baseline.argv[1:] or Path(words[0]).name != Path(claim.baseline.argv[0]).name:
        found.append(f"the command was {' '.join(claim.baseline.argv)}, is {' '.join(words)}")
    return found + (fingerprint.differences(claim.machine, contents.facts(here.machine)) if here.machine and claim.machine else [])


def _known(session: Session, commit: str | None) -> str | None:
    """The commit, if the owner's repository has it."""
    try:
        return refs.commit_named(Path(session.sandbox.project), commit) if commit else None
    except UsageError:
        return None
