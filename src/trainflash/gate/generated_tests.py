"""pytest tests for an owner's repository: its baselines are sound, and the gate would stop what it is there to stop."""

from __future__ import annotations

from dataclasses import asdict

from trainflash.gate.tolerances import ToleranceConfig

_TEXT = '''"""Written by `trainflash gate tests`: the baselines of this repository are sound, and the gate holds.

Each stored baseline is compared with itself, and with itself made better and worse around every tolerance. Nothing is trained here.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from trainflash.gate import baselines
from trainflash.gate.comparison import compare
from trainflash.gate.tolerances import ToleranceConfig

FOLDER = Path(__file__).resolve().parents[{depth}] / {folder!r}
TOLERANCES = ToleranceConfig(**{tolerances!r})
FILES = sorted(FOLDER.glob("*.json"))
FACTORS = (-4.0, -1.0, 0.0, 4.0, 8.0)  # how much worse, in tolerances; below 0 it is better

METRICS = {{
    "step": ("throughput_drop_pct", lambda found, worse: _slower(found, 1 / (1 - worse / 100) if worse < 100 else 100.0)),
    "memory": ("memory_increase_pct", lambda found, worse: _scaled(found, ("memory_peak_bytes",), 1 + worse / 100)),
    "loss": ("loss_slope_threshold", lambda found, worse: replace(found, loss_slope=worse, repeats=_without_losses(found))),
}}
EVAL = {{
    "perplexity": ("ppl_increase_pct", lambda found, worse: _scaled(found, ("perplexity",), 1 + worse / 100)),
    "probes": ("probe_drop_abs", lambda found, worse: replace(found, probes=tuple(_probe(each, worse) for each in found.probes))),
    "metrics": ("ppl_increase_pct", lambda found, worse: replace(found, metrics=tuple(_metric(each, worse) for each in found.metrics))),
}}
HAS = {{"memory": "memory_peak_bytes", "loss": "loss_slope", "perplexity": "perplexity", "probes": "probes", "metrics": "metrics"}}


def _scaled(found, names, factor):
    return replace(found, **{{name: type(getattr(found, name))(getattr(found, name) * factor) for name in names if getattr(found, name)}})


def _slower(found, factor):
    times = _scaled(found, ("step_time_mean_ms", "step_time_p50_ms", "step_time_p90_ms"), factor)
    return _scaled(times, ("tokens_per_sec_p50", "samples_per_sec_p50"), 1 / factor)


def _without_losses(found):
    return tuple(replace(each, losses=()) for each in found.repeats)


def _probe(each, worse):
    return replace(each, accuracy=min(100.0, max(0.0, each.accuracy - worse)))


def _metric(each, worse):
    return replace(each, value=each.value + abs(each.value) * worse / 100 * (1 if each.better == "lower" else -1))


def _cases():
    for path in FILES:
        for name, (tolerance, _) in (METRICS if path.name.endswith(".metrics.json") else EVAL).items():
            for factor in FACTORS:
                yield pytest.param(path, name, tolerance, factor, id=f"{{path.name}}-{{name}}-{{factor:g}}")


def test_there_is_a_baseline():
    assert FILES, f"{{FOLDER}} is empty: trainflash gate update-baseline"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_baseline_is_sound_and_passes_against_itself(path):
    found = baselines.stored(FOLDER, path.name.rsplit(".", 2)[0], path.name.rsplit(".", 2)[1])
    assert found is not None and found.provenance is not None
    assert compare(found, found, TOLERANCES).result in ("pass", "inconclusive")  # inconclusive: too few repeats for a tight tolerance


@pytest.mark.parametrize(("path", "name", "tolerance", "factor"), _cases())
def test_the_gate_stops_what_got_worse_and_nothing_else(path, name, tolerance, factor):
    found = baselines.load(path)
    change = (METRICS | EVAL)[name][1]
    if name in HAS and not getattr(found.document, HAS[name]):
        pytest.skip(f"the baseline has no {{HAS[name]}}")
    limit = getattr(TOLERANCES, tolerance)
    worse = factor * limit
    if name == "step":
        worse = min(worse, 90.0)
    if name == "loss" and factor <= 0:
        worse = factor * limit
    after = replace(found, document=change(found.document, worse))
    result = compare(after, found, TOLERANCES).result
    noisy = name in ("step", "memory", "loss") and result == "inconclusive"
    if factor <= 0:
        assert result in ("pass", "warn") or noisy
    elif name == "probes" and any(each.accuracy < worse for each in found.document.probes):
        assert result != "pass" or all(each.accuracy <= limit for each in found.document.probes)
    else:
        assert result in (("warn", "inconclusive") if name == "memory" else ("fail", "inconclusive") if name == "step" else ("fail",))


def test_another_machine_is_never_compared():
    for path in FILES:
        found = baselines.load(path)
        other = replace(found, document=replace(found.document, machine_profile="another-machine"))
        assert not compare(other, found, TOLERANCES).compared
'''


def rendered(folder: str, tolerances: ToleranceConfig, depth: int = 1) -> str:
    """The test file for `tests/`; `folder` holds the baselines, relative to the repository, `depth` levels above the file's folder."""
    return _TEXT.format(folder=folder, tolerances=asdict(tolerances), depth=depth)
