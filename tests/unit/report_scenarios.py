"""A tuning as it comes out of a real run of an image classifier, for every test of the reports."""

from __future__ import annotations

from dataclasses import replace

from trainflash.report import Steps, TuneView
from trainflash.schema import (
    Brief,
    Candidate,
    Ceiling,
    Check,
    Command,
    Diagnosis,
    Evidence,
    Experiment,
    Fidelity,
    Finding,
    Location,
    LogEntry,
    PhaseStat,
    Plan,
    Refusal,
    Speedup,
    Spread,
    Timeline,
    Verdict,
)

COMMAND = Command(argv=("python", "train.py", "--config", "configs/flowers.yaml"))

DIFF = """\
diff --git a/data.py b/data.py
--- a/data.py
+++ b/data.py
@@ -26,9 +26,14 @@ class Flowers(Dataset):
     def __len__(self) -> int:
         return len(self.rows)

+    @functools.lru_cache(maxsize=4096)
+    def _statistics(self, folder: str) -> tuple[float, float]:
+        return mean_and_std(folder)
+
     def __getitem__(self, index: int):
         row = self.rows[index]
-        mean, std = mean_and_std(row.folder)  # <b>once</b> per folder & not once per image, which takes as long as the whole rest
+        mean, std = self._statistics(row.folder)
         image = decode(row.path)
         return (image - mean) / std, row.label
--- a/train.py
+++ b/train.py
@@ -88,7 +88,7 @@ def main(config):
-    loader = DataLoader(train_set, batch_size=64, shuffle=True)
+    loader = DataLoader(train_set, batch_size=64, shuffle=True, num_workers=2, persistent_workers=True)
"""


def _phase(
    share: float, mean: float, p50: float | None, p95: float | None, p99: float | None, occurrence: Spread | None = None
) -> PhaseStat:
    return PhaseStat(share, mean, p50, p95, p99, occurrence)


BOTTLENECK = Finding(
    kind="input_cpu",
    phase="Data",
    bound_by="input",
    share=0.682,
    severity="high",
    summary="The training process spends 68 % of its time computing samples in the main process.",
    evidence=(
        Evidence("fetch_cpu_share", 0.97, "share"),
        Evidence("getitem", 1.83, "ms a sample"),
        Evidence("num_workers", 0),
    ),
    location=Location("data.py", 31, "Flowers.__getitem__"),
    ceiling=Ceiling(2.41, "measured"),
    knobs=("dataloader_workers", "cache_pure_function"),
)
BEFORE = Diagnosis(
    run="20261121-120301-diagnose",
    steps=240,
    wall_s=41.7,
    timeline="host",
    coverage=0.964,
    phases={
        "Data": _phase(0.682, 118.4, 112.0, 161.3, 240.8),
        "Fwd": _phase(0.121, 21.0, 20.8, 23.9, None),
        "Bwd": _phase(0.108, 18.7, 18.4, 21.2, None),
        "Opt": _phase(0.031, 5.4, 5.3, 6.1, None),
        "Ckpt": _phase(0.0004, 0.07, 0.0, 0.0, 9.3, Spread(2, 8.4, None, None, None, 9.3)),
        "Log": _phase(0.022, 3.8, 3.7, 4.4, 7.2),
        "Other": _phase(0.0356, 6.2, 6.0, 8.3, None),
    },
    findings=(
        BOTTLENECK,
        Finding(
            kind="repeated_work",
            phase="Data",
            bound_by="input",
            share=0.44,
            severity="high",
            summary="mean_and_std is called again with equal arguments and equal result in 96 % of its calls.",
            evidence=(Evidence("calls", 15360), Evidence("repeats", 14746), Evidence("mean", 1.2, "ms")),
            location=Location("statistics/folder_statistics_of_the_training_images.py", 112, "mean_and_std"),
            ceiling=Ceiling(1.78, "bound"),
            knobs=("cache_pure_function",),
        ),
        Finding(
            kind="logging",
            phase="Log",
            bound_by="host",
            share=0.022,
            severity="low",
            summary="A metric is written at every step.",
            evidence=(Evidence("every", 1, "step"),),
            location=None,
            ceiling=None,
            knobs=("log_every",),
        ),
    ),
    abstained=None,
    notes=("2 exceptions of the probe were kept from the program",),
)
AFTER = replace(
    BEFORE,
    run="20261121-121944-diagnose",
    wall_s=17.5,
    coverage=0.927,
    phases={
        "Data": _phase(0.204, 14.1, 11.9, 33.0, 61.2),
        "Fwd": _phase(0.309, 21.3, 21.0, 24.4, None),
        "Bwd": _phase(0.276, 19.0, 18.6, 21.9, None),
        "Opt": _phase(0.078, 5.4, 5.3, 6.2, None),
        "Ckpt": _phase(0.001, 0.07, 0.0, 0.0, 9.1, Spread(2, 8.2, None, None, None, 9.1)),
        "Log": _phase(0.056, 3.9, 3.7, 4.6, 7.0),
        "Other": _phase(0.073, 5.0, 4.9, 7.7, None),
    },
    findings=(
        replace(
            BOTTLENECK, kind="compute", phase="Fwd", share=0.585, severity="none", summary="Most of the time is the model's own arithmetic."
        ),
    ),
    notes=(),
)

SAME = Fidelity(
    verdict="same",
    changed=(),
    mean_abs_loss_delta=0.0,
    max_abs_loss_delta=0.0,
    tolerance=1e-3,
    updates=200,
    seen=("epoch boundary", "evaluation"),
    not_seen=("checkpoint", "schedule"),
    checks=(
        Check("losses", True, "200 of 200 equal bit for bit"),
        Check("batches", True, "200 of 200 hold the same samples in the same order"),
        Check("gradients finite", True, "no NaN, no infinity"),
        Check("checkpoint", None, "none was written within 200 updates"),
    ),
)
CHANGED = replace(
    SAME,
    verdict="changed",
    changed=("order",),
    mean_abs_loss_delta=0.0314,
    max_abs_loss_delta=0.21,
    checks=(Check("batches", False, "from update 1 on, other samples"), *SAME.checks[2:]),
    reasons=("the order of the samples changed, and `order` is not allowed",),
)


def verdict(kind: str, mean: float, low: float, high: float, fidelity: Fidelity | None = SAME, reason: str = "") -> Verdict:
    """A verdict from four starts."""
    reasons = (reason or f"faster by more than 1.02× in every look; {fidelity.verdict if fidelity else 'no fidelity'}",)
    speedup = Speedup(mean, low, high, 4, p95=mean * 0.93, p99=None, tail_reason="too few steps for p99")
    return Verdict(kind, speedup, fidelity, 4, reasons, protection="mount: a private mount namespace", spent_s=212.0)


def experiment(n: int, knob: str, value: str, decision: str, judged: Verdict | None, parent: int | None = None) -> Experiment:
    """One experiment on `data.py`."""
    return Experiment(
        n=n,
        parent=parent,
        knob=knob,
        value=value,
        finding="input_cpu",
        location=Location("data.py", 31, "Flowers.__getitem__"),
        risk="same",
        why="samples are computed in the main process while the model waits",
        commit="3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
        parent_commit="a94a8fe5ccb19ba61c4c0873d391e987982fbbd3",
        diff_digest="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        files=("data.py",),
        command=COMMAND,
        created_utc="2026-11-21T12:05:11Z",
        verdict=judged,
        decision=decision,
    )


EXPERIMENTS = (
    experiment(1, "cache_pure_function", "mean_and_std", "accepted", verdict("accept", 1.71, 1.66, 1.77)),
    experiment(2, "dataloader_workers", "2", "accepted", verdict("accept", 1.46, 1.38, 1.55), parent=1),
    experiment(
        3, "log_every", "50", "inconclusive", verdict("inconclusive", 1.018, 0.991, 1.046, reason="the interval holds 1.02"), parent=2
    ),
    experiment(
        4, "length_bucketing", "8", "rejected", verdict("reject", 1.12, 1.08, 1.16, CHANGED, reason="trains differently: order"), parent=2
    ),
    experiment(5, "torch_compile", "reduce-overhead", "failed", None, parent=2),
)

TUNED = TuneView(
    before=BEFORE,
    after=AFTER,
    experiments=EXPERIMENTS,
    combined=verdict("accept", 2.49, 2.35, 2.64),
    diff=DIFF,
    report_path="/home/ada/.local/state/trainflash/flowers-1f3c9a/report.html",
    log_path="/home/ada/.local/state/trainflash/flowers-1f3c9a/tuning_log.yaml",
    approve_command="trainflash writeback --accepted",
    stopped_because="no candidate is left",
    spent_s=1131.0,
    project="flowers",
)
NOTHING = replace(
    TUNED,
    before=None,
    after=None,
    experiments=(),
    combined=None,
    diff="",
    approve_command=None,
    stopped_because="no knob fits what was found",
)


def timeline(diagnosis: Diagnosis, bins: int = 120, per_bin: int = 2) -> Timeline:
    """Steps as long as the diagnosis says, with some swing, a slow start, and one checkpoint that takes far longer."""
    swing = [1.6 if n < 5 else 1.0 + 0.15 * ((n * 7) % 5 - 2) / 2 for n in range(bins)]
    phases = {name: tuple(stat.mean_ms * each for each in swing) for name, stat in diagnosis.phases.items()}
    phases["Ckpt"] = tuple(2100.0 if n == 80 else 0.0 for n in range(bins))
    slowest = tuple(1.2 * sum(column) for column in zip(*phases.values(), strict=True))
    usual = sum(stat.mean_ms for stat in diagnosis.phases.values())
    times = Spread(bins * per_bin - 5, usual, usual * 0.98, usual * 1.4, None, max(slowest))
    return Timeline(diagnosis.run, bins * per_bin, 5, tuple(range(0, bins * per_bin, per_bin)), phases, slowest, times)


STEPS = Steps(timeline(BEFORE), timeline(AFTER))

PLAN = Plan(
    run=BEFORE.run,
    created_utc="2026-11-21T12:04:00Z",
    candidates=(
        Candidate(
            "cache_pure_function", "mean_and_std", "repeated_work", Location("data.py", 31), "same", DIFF, "the same work is done 25 times"
        ),
        Candidate(
            "dataloader_workers", "2", "input_cpu", Location("train.py", 88), "same", DIFF, "a core is idle while samples are computed"
        ),
        Candidate("length_bucketing", "8", "input_cpu", None, "order", DIFF, "batches are padded"),
    ),
    refused=(Refusal("pin_memory", "h2d", "the model is on the CPU"),),
    briefs=(
        Brief(
            finding="host_code",
            location=Location("callbacks.py", 14, "on_step"),
            summary="A callback sorts all past losses at every step.",
            code="def on_step(self, loss):\n    self.losses.append(loss)\n    self.best = sorted(self.losses)[0]\n",
            evidence=(Evidence("share", 0.031, "share"),),
            ceiling=Ceiling(1.03, "bound"),
            keep_the_same="self.best after every step",
            judged_by="trainflash optimize try --patch FILE",
        ),
    ),
)

LOG = (
    LogEntry(kind="sandbox", at_utc="2026-11-21T12:02:58Z", what="made from main with 2 files not committed"),
    LogEntry(kind="diagnosis", at_utc="2026-11-21T12:03:44Z", what="input_cpu at data.py:31, 68.2 % of the time", before=BEFORE.phases),
    *(
        LogEntry(
            kind="experiment",
            at_utc=f"2026-11-21T12:{5 + e.n:02}:00Z",
            what=f"{e.knob} = {e.value}",
            why=e.why,
            experiment=e.n,
            knob=e.knob,
            value=e.value,
            speedup=e.verdict.speedup if e.verdict else None,
            verdict=e.verdict.verdict if e.verdict else "",
            decision=e.decision,
        )
        for e in EXPERIMENTS
    ),
    LogEntry(
        kind="combination",
        at_utc="2026-11-21T12:19:00Z",
        what="experiments 1 and 2 together",
        speedup=TUNED.combined.speedup,
        decision="accepted",
    ),
)
