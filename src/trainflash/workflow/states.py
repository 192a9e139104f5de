"""The two states that a verdict compares: commits of the owner's, a patch on one of them, an experiment, or what was accepted.

Whatever is named becomes a commit of the sandbox's own history, on top of the state that it was made of; the owner's tree, index and refs
are only read. Files that no commit holds (untracked data, settings) are on both sides as the sandbox holds them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainflash import redact
from trainflash import sandbox as sandboxes
from trainflash.errors import UsageError
from trainflash.sandbox import refs
from trainflash.schema import Command, Compared, Experiment, State, WordChange, as_changed
from trainflash.workflow import optimizing, verifying
from trainflash.workflow.session import Session, some_of

PATCHES = (".diff", ".patch")
NOW = "the project as it is now"


@dataclass(frozen=True)
class Asked:
    """What a verdict is asked about: an experiment, or a baseline and a candidate by name; without any, all accepted changes together.

    `patch`: the file that `candidate` names; it is then no commit. `carried`: a bundle whose change is the candidate.
    """

    experiment: int | None = None
    baseline: str | None = None
    candidate: str | None = None
    patch: Path | None = None
    carried: Path | None = None

    @property
    def by_name(self) -> bool:
        return self.baseline is not None or self.candidate is not None or self.carried is not None

    @property
    def of_now(self) -> bool:
        """Whether one of the two may be the project as it is now."""
        return self.baseline is None if self.patch or self.carried else self.candidate is None


@dataclass(frozen=True)
class Pair:
    """Both sides as they are run. `commits` are the sandbox's; `edited` as `verifying.compare` takes it."""

    about: Compared
    commits: tuple[str, str]
    commands: tuple[Command, Command]
    edited: tuple[str, ...] | None = None
    words: tuple[WordChange, ...] = ()  # of the command, that are part of the change


@dataclass(frozen=True)
class Held:
    """One side: what is told of it, and the sandbox's commit."""

    state: State
    commit: str


def asked(experiment: int | None, baseline: str | None, candidate: str | None, folder: Path, carried: Path | None = None) -> Asked:
    """What was typed, in `folder`. Raises `UsageError` for an experiment beside two states, and for a bundle beside a candidate."""
    if carried is not None and (experiment is not None or candidate is not None):
        raise UsageError(
            "a bundle brings its change itself", "leave the experiment or candidate out; --baseline says what it is applied to"
        )
    if experiment is not None and (baseline is not None or candidate is not None):
        raise UsageError("an experiment and a baseline or candidate exclude each other", "name an experiment, or two states")
    patch = folder / candidate if candidate is not None and candidate.endswith(PATCHES) and (folder / candidate).is_file() else None
    return Asked(experiment, baseline, candidate, patch, carried)


def pair(session: Session, question: Asked, command: Command | None) -> Pair:
    """The two states that are asked about. `command` None: the experiment's own."""
    if question.experiment is not None:
        return _of_experiment(session, question.experiment, command)
    assert command is not None
    return _named(session, question, command) if question.by_name else _of_accepted(session, command)


def _named(session: Session, question: Asked, command: Command) -> Pair:
    """The pair that two names stand for, of which one may be missing.

    A candidate that is a branch or commit of the owner's is compared with where it left the main branch (else with its parent), one
    of the sandbox or a patch with the project as it is now; without a candidate that one is judged. Raises `UsageError` for a name that
    nobody knows, a patch that does not apply, and a file that the command names and one side lacks.
    """
    box, project = session.sandbox, Path(session.sandbox.project)
    baseline, candidate, patch = question.baseline, question.candidate, question.patch
    ours = None if candidate is None or patch else refs.held(box, candidate)
    sha = None if candidate is None or patch or ours else _commit_named(project, candidate)
    note, theirs, base = "", None, baseline
    if baseline is None and sha is not None:
        theirs, why = refs.parting(project, sha)
        base, note = theirs[:7], f"baseline: {theirs[:7]}, {why}"
    elif baseline is not None and refs.held(box, baseline) is None:
        theirs = refs.commit_named(project, baseline)
    shas = [one for one in (theirs, sha) if one is not None]
    old = _side(session, base, theirs, shas)
    if patch is not None:
        new = _patched(session, patch, old)
    elif candidate is None:
        new = Held(State(NOW, None, refs.tree_of(box, session.tip())), session.tip())
    else:
        new = _side(session, candidate, sha, shas)
    accepted = session.accepted() if candidate is None else ()
    changed = as_changed(command, accepted)
    refuse_missing(session, (old, new), command)
    edited = _edited_beside(session, shas) if theirs is not None and not question.of_now else None
    about = Compared(old.state, new.state, shown(command), note)
    return Pair(about, (old.commit, new.commit), (command, changed), edited, _words(accepted))


def baseline_of(session: Session, name: str | None) -> Held:
    """The state that a baseline's name stands for; None: the project as it is now."""
    theirs = None if name is None or refs.held(session.sandbox, name) else refs.commit_named(Path(session.sandbox.project), name)
    return _side(session, name, theirs, () if theirs is None else (theirs,))


def _of_experiment(session: Session, n: int, command: Command | None) -> Pair:
    """Experiment `n` and the state it was built on; with its own command, or `command`."""
    box, experiment = session.sandbox, verifying.with_command(session.experiment(n), command)
    commits = experiment.parent_commit, experiment.commit
    names = "the state before it", f"experiment {n} ({experiment.knob})"
    old, new = (State(name, None, refs.tree_of(box, commit)) for name, commit in zip(names, commits, strict=True))
    commands = verifying.commands_of(session, experiment)
    return Pair(Compared(old, new, shown(commands[0])), commits, commands, words=experiment.words)


def _of_accepted(session: Session, command: Command) -> Pair:
    """All accepted experiments together and the owner's state. Raises `UsageError` where none was accepted."""
    box, accepted = session.sandbox, session.accepted()
    if not accepted:
        raise UsageError("nothing was accepted in this sandbox yet", "name --experiment N, or --baseline and --candidate")
    commits = box.base_ref, session.tip()
    names = "the project", "all accepted changes together"
    old, new = (State(name, None, refs.tree_of(box, commit)) for name, commit in zip(names, commits, strict=True))
    return Pair(Compared(old, new, shown(command)), commits, (command, as_changed(command, accepted)), words=_words(accepted))


def _words(experiments: Iterable[Experiment]) -> tuple[WordChange, ...]:
    return tuple(change for experiment in experiments for change in experiment.words)


def _side(session: Session, name: str | None, sha: str | None, shas: Collection[str]) -> Held:
    """`sha` is the owner's commit behind the name; None: the name is of the sandbox's history, or stands for the project."""
    box = session.sandbox
    if sha is not None:
        commit = refs.adopt(box, sha, shas)
        return Held(State(str(name), sha, refs.tree_of(box, commit)), commit)
    commit = box.base_ref if name is None else str(refs.held(box, name))
    return Held(State(name or NOW, None, refs.tree_of(box, commit)), commit)


def _patched(session: Session, patch: Path, old: Held) -> Held:
    """A patch file as a commit on top of the baseline."""
    diff = optimizing.from_patch(patch).diff
    session.take("candidate", old.commit)
    try:
        commit = sandboxes.commit_diff(session.sandbox, diff, f"{patch.name} on {old.state}")
    except UsageError as bad:
        mend = f"make it against {old.state}, or name the commit it was made on: --baseline REF"
        raise UsageError(f"{patch.name}: {bad.message}", mend if "apply" in bad.message else bad.mend) from None
    return Held(State(patch.name, None, refs.tree_of(session.sandbox, commit)), commit)


def _commit_named(project: Path, candidate: str) -> str:
    """The owner's commit. Raises `UsageError` for one that git does not know, or a patch file that is not there or not named as one."""
    try:
        return refs.commit_named(project, candidate)
    except UsageError as bad:
        if candidate.endswith(PATCHES):
            mend = "name a unified diff, such as `git diff main > faster.diff` writes"
            raise UsageError(f"{candidate}: there is no such patch file", mend) from None
        if (project / candidate).is_file():
            raise UsageError(f"{candidate} is a file, and no commit", "a patch file is named *.diff or *.patch") from None
        raise bad


def refuse_missing(session: Session, sides: tuple[Held, Held], command: Command) -> None:
    """Refuse a command that names a file of one side which the other lacks: it would fail there for no fault of the change."""
    files = [refs.files_of(session.sandbox, side.commit) for side in sides]
    for word in _files_named(command):
        there = [word in held for held in files]
        if any(there) and not all(there):
            has, lacks = (sides[there.index(wanted)].state for wanted in (True, False))
            raise UsageError(f"the command names {word}, which {has} has and {lacks} lacks", "give a command that runs in both")


def _files_named(command: Command) -> list[str]:
    """Paths that words of a command may stand for, relative to the project: FILE, --option=FILE, and MODULE behind -m."""
    found = []
    for before, word in zip(("", *command.argv), command.argv, strict=False):
        named = word.partition("=")[2] if word.startswith("-") and "=" in word else word
        found.append(os.path.normpath(PurePosixPath(command.cwd, named)))
        if before == "-m":
            place = PurePosixPath(command.cwd, *word.split("."))
            found += [os.path.normpath(f"{place}.py"), os.path.normpath(place / "__main__.py")]
    return found


def _edited_beside(session: Session, shas: Collection[str]) -> tuple[str, ...]:
    """What was edited since the sandbox was made and is in no commit: of both sides it is as the sandbox holds it."""
    drifted = sandboxes.drifted(session.sandbox)
    if not drifted:
        return ()
    here = [refs.commit_named(Path(session.sandbox.project), "HEAD")]
    edited = tuple(sorted(set(drifted) - refs.tracked(session.sandbox, {*shas, *here})))
    if edited:
        renew = "for the present ones: `trainflash sandbox discard`, then this command again"
        session.on_progress(f"files that no commit holds are as they were before {some_of(edited)} changed; {renew}", 0, 0)
    return edited


def shown(command: Command) -> str:
    """The command as it may be told."""
    return shlex.join(redact.argv(command.argv))
