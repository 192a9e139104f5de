"""`gate compare`, `update-baseline`, `history`, `ci`, `tests`: stored baselines, who may replace them, what is written for owners."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from trainflash import config, resources
from trainflash.errors import UsageError
from trainflash.gate import baselines, comparison, generated_tests, history, slower, workflows
from trainflash.gate.tolerances import ToleranceConfig, from_table, from_words
from trainflash.sandbox import refs
from trainflash.schema import Command, GateEval, GateMetrics, write_atomically, write_document
from trainflash.schema.gate_changes import CompareResult, GateTrend
from trainflash.workflow.session import now_utc

MAIN_BRANCH = "main_branch"  # a key of the settings' [gate] beside the tolerances
FOLDER = Path(baselines.FOLDER)
HISTORY = Path(history.FILE)

Workflow = workflows.Asked


@dataclass(frozen=True)
class Measured:
    """The files of one state of the project; None: not measured."""

    metrics: Path | None = None
    eval: Path | None = None

    def loaded(self) -> list[baselines.Loaded]:
        """Both documents. Raises `UsageError` for a file that is none, or of another kind."""
        found = []
        for kind, path in (("metrics", self.metrics), ("eval", self.eval)):
            if path is not None:
                one = baselines.load(path)
                if one.kind != kind:
                    raise UsageError(f"{path} holds {one.kind}, not {kind}", f"name it with --{one.kind}")
                found.append(one)
        if not found:
            raise UsageError("nothing is named that could be used", "give --metrics FILE, --eval FILE or both")
        return found


def tolerances(settings: config.Settings, words: tuple[str, ...] = ()) -> ToleranceConfig:
    """Those of the settings, with what was typed over them."""
    table = {name: value for name, value in settings.gate.items() if name != MAIN_BRANCH}
    return from_words(words, from_table(table, "[gate] in the settings"))


def compare(
    project: Path, measured: Measured, folder: Path, held: ToleranceConfig, baseline: Path | None = None, *, permitted: bool = False
) -> CompareResult:
    """What was measured against the stored baselines of its machine profile, or against the one file `baseline`.

    `permitted`: a document that has no baseline here is a warning; what the other one says stays as it is.
    """
    found = []
    for one in measured.loaded():
        before = baselines.load(baseline) if baseline is not None else baselines.stored(folder, one.document.machine_profile, one.kind)
        if before is None:
            found.append(comparison.no_baseline(one, folder))
            continue
        if before.kind != one.kind:
            raise UsageError(f"{before.source} holds {before.kind}, {one.source} holds {one.kind}", "name two files of one kind")
        found.append(comparison.compare(one, before, held, _moved(project, before)))
    return comparison.together([comparison.permitted(each) for each in found] if permitted else found)


def update_baseline(
    project: Path, measured: Measured, folder: Path, settings: config.Settings, *, maintainer: bool
) -> tuple[list[Path], str]:
    """Make what was measured the baseline; returns the files, and who let it.

    On the main branch, from a clean state of its newest commit, or with the maintainer's word. Raises `UsageError` otherwise.
    """
    documents = measured.loaded()
    branch = _branch(project)
    if not maintainer:
        _refuse_others(project, branch, documents, settings)
    by = "maintainer" if maintainer else "main branch"
    return [baselines.write(one, folder, by=by, branch=branch) for one in documents], by  # type: ignore[arg-type]


def add_to_history(path: Path, measured: Measured, result: CompareResult | None, label: str | None) -> None:
    """One more line of the history."""
    documents = {one.kind: one.document for one in measured.loaded()}
    metrics, evaluation = documents.get("metrics"), documents.get("eval")
    assert metrics is None or isinstance(metrics, GateMetrics)
    assert evaluation is None or isinstance(evaluation, GateEval)
    history.append(path, history.record(metrics, evaluation, result, at_utc=now_utc(), label=label))


def evaluation(argv: tuple[str, ...]) -> Command | None:
    """The owner's evaluation command; None: the training command is it."""
    return Command(argv) if argv else None


def keep(path: Path, result: CompareResult) -> None:
    """Write a result as JSON."""
    write_document(path, result)


def trend(path: Path, machine_profile: str | None, held: ToleranceConfig) -> GateTrend:
    """Figures over time, with the commits at which they changed."""
    return history.trend(path, machine_profile, held)


def installed(project: Path) -> tuple[str, ...]:
    """What pip has to install: TrainFlash from where it came here, and for the training what the project says of itself, else torch."""
    if (project / "requirements.txt").is_file():
        return (_ourselves(), "-r", "requirements.txt")
    return (_ourselves(), ".") if (project / "pyproject.toml").is_file() else (_ourselves(), "torch")


def _ourselves() -> str:
    """`trainflash`, or the repository and commit that pip installed it from (PEP 610)."""
    try:
        said = json.loads(metadata.distribution("trainflash").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return "trainflash"
    source = said.get("vcs_info", {})
    return f"trainflash @ {source['vcs']}+{said['url']}@{source['commit_id']}" if source else "trainflash"


def write_workflow(path: Path | None, asked: workflows.Asked, *, force: bool) -> Path:
    """The workflow for the owner's repository, and where it is; without a `path` in the place that GitHub reads."""
    path = path or Path(".github/workflows", workflows.name_of(asked.mode))
    template = workflows.template_of(resources.folder("templates") / "ci", asked.mode)
    _write(path, workflows.rendered(template, asked), force=force)
    return path


def write_tests(path: Path, folder: Path, held: ToleranceConfig, *, force: bool) -> None:
    """pytest tests that hold the owner's gate; `path` and `folder` are relative to the project."""
    if path.is_absolute() or folder.is_absolute() or ".." in path.parts:
        raise UsageError(f"{path} is not below this folder", "name a file and a folder of baselines relative to the project")
    _write(path, generated_tests.rendered(folder.as_posix(), held, len(path.parts) - 1), force=force)


def _write(path: Path, text: str, *, force: bool) -> None:
    if path.exists() and not force and path.read_text(encoding="utf-8", errors="replace") != text:
        raise UsageError(f"{path} is there already, and is another", "name another file with --out, or replace it with --force")
    write_atomically(path, text)


def _refuse_others(project: Path, branch: str | None, documents: list[baselines.Loaded], settings: config.Settings) -> None:
    main = settings.gate.get(MAIN_BRANCH) or refs.main_branch_of(project)
    mend = "do it on the main branch, or as the maintainer: --i-am-maintainer"
    if main is None:
        raise UsageError("nobody knows which branch is the main one", f"set {MAIN_BRANCH} under [gate] in trainflash.toml; or {mend}")
    if branch != main:
        raise UsageError(f"a baseline is made on {main}, and this is {branch or 'no branch (a detached HEAD)'}", mend)
    head = refs.commit_named(project, "HEAD")
    for one in documents:
        if one.document.commit != head:
            raise UsageError(f"{one.source}: commit is {one.document.commit}, but {branch} is at {head}", f"measure this commit; or {mend}")
        if one.document.dirty:
            raise UsageError(f"{one.source}: dirty: it was measured with changes that no commit holds", f"commit and measure; or {mend}")


def _branch(project: Path) -> str | None:
    try:
        return refs.branch_of(project)
    except UsageError:
        return None


def _moved(project: Path, before: baselines.Loaded) -> slower.Moved:
    """Where lines of the baseline's commit stand now; where git does not know that commit, every line where it was."""
    sha = before.document.commit
    if sha is None:
        return slower.unmoved

    def then(name: str) -> str | None:
        try:
            return refs.text_at(project, sha, name)
        except UsageError:
            return None

    def now(name: str) -> str | None:
        try:
            return (project / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    return slower.moved_between(then, now)
