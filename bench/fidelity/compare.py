"""What differs between two recorded runs: one entry per signal with the first update at which it shows."""

import json
from collections import Counter
from pathlib import Path

import torch


class Run:
    """One recorded run; per-update lists are indexed by update of the first optimizer."""

    def __init__(self, folder, outputs):
        folder = Path(folder)
        record = json.loads((folder / "record.json").read_text())
        self.steps = record["steps"]
        self.events = record["events"]
        self.weights = torch.load(folder / "weights.pt")
        self.stdout = (folder / "stdout.txt").read_text()
        self.logs = self.stdout + "".join(p.read_text() for o in outputs for p in sorted((folder / o).glob("*.jsonl")))
        self.files = {}
        for o in outputs:
            for path in sorted((folder / o).rglob("*.pt")):
                self.files[path.name] = torch.load(path)
        self.trained = [e for e in self.events if e["kind"] == "forward" and e["trained"]]
        self.evaluated = [e for e in self.events if e["kind"] == "forward" and not e["trained"]]
        self.losses = [e for e in self.events if e["kind"] == "loss" and e["trained"]]
        self.backwards = [e for e in self.events if e["kind"] == "backward"]
        self.optim = [e for e in self.events if e["kind"] == "step"]
        self.saves = [e for e in self.events if e["kind"] == "save"]

    def by_update(self, events, value):
        table = {}
        for e in events:
            table.setdefault(e["update"], []).append(value(e))
        return table

    def mean_losses(self):
        return {u: sum(v) / len(v) for u, v in self.by_update(self.losses, lambda e: e["value"]).items()}


def first_difference(a, b):
    """First key at which two tables differ, or None."""
    for key in sorted(set(a) | set(b)):
        if a.get(key) != b.get(key):
            return key
    return None


def relative(a, b):
    if len(a) != len(b) or any(x.shape != y.shape for x, y in zip(a, b, strict=True)):
        return float("inf")
    up = sum(((x - y).double() ** 2).sum() for x, y in zip(a, b, strict=True))
    down = sum((x.double() ** 2).sum() for x in a)
    return float((up / down).sqrt())


def tensor_distance(a, b):
    """Largest relative distance of two nested states; inf where their structure differs."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        if not a.is_floating_point():
            return 0.0 if torch.equal(a, b) else 1.0
        scale = a.double().norm().item()
        return (a.double() - b.double()).norm().item() / (scale + 1e-12)
    if isinstance(a, dict) and isinstance(b, dict):
        if set(a) != set(b):
            return float("inf")
        return max((tensor_distance(a[k], b[k]) for k in a), default=0.0)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return float("inf")
        return max((tensor_distance(x, y) for x, y in zip(a, b, strict=True)), default=0.0)
    if isinstance(a, float) and isinstance(b, (float, int)):
        return abs(a - b) / (abs(a) + 1e-12)
    return 0.0 if a == b else 1.0


def structure(value):
    """Keys of a saved state; the settings of parameter groups (foreach, fused) don't count."""
    if isinstance(value, dict):
        return {str(k): structure(v) for k, v in value.items() if k != "param_groups"}
    return "tensor" if isinstance(value, torch.Tensor) else "value"


def rows_of(events):
    return [h for e in events for h in e["rows"]]


def first_model(run):
    """Forwards of the module that trains first, so that a critic does not count its rows again."""
    return [e for e in run.trained if e["model"] == run.trained[0]["model"]] if run.trained else []


def hard(a, b, tolerant=False):
    """Signals that differ exactly; `tolerant` leaves out content hashes (another memory layout or rounding)."""
    out = {}

    def note(name, update, evidence):
        out[name] = {"update": update, "evidence": evidence}

    def table(name, events, value):
        left, right = a.by_update(events(a), value), b.by_update(events(b), value)
        at = first_difference(left, right)
        if at is not None:
            note(name, at, f"{str(left.get(at))[:80]} | {str(right.get(at))[:80]}")
        return at

    if a.steps != b.steps:
        short = min(a.steps[0], b.steps[0]) if b.steps else 0
        note("updates", short, f"{a.steps} | {b.steps}")
    fa, fb = first_model(a), first_model(b)
    if sum(len(e["rows"]) for e in fa) != sum(len(e["rows"]) for e in fb):
        at = first_difference(a.by_update(fa, lambda e: len(e["rows"])), b.by_update(fb, lambda e: len(e["rows"])))
        note("samples", at, f"{sum(len(e['rows']) for e in fa)} | {sum(len(e['rows']) for e in fb)}")
    rows_at = first_difference(a.by_update(fa, lambda e: e["rows"]), b.by_update(fb, lambda e: e["rows"]))
    ca, cb = Counter(rows_of(fa)), Counter(rows_of(fb))
    if ca != cb:
        note("inputs", rows_at, f"{sum((ca - cb).values())} samples of {sum(ca.values())} not seen")
    if rows_at is not None:
        note("order", rows_at, f"update {rows_at}")
    if len(ca) != len(cb):
        note("distinct samples", rows_at, f"{len(ca)} | {len(cb)}")
    table("input width", first_model, lambda e: e["shape"][1:])
    table("batch", first_model, lambda e: len(e["rows"]))
    table("mode", first_model, lambda e: e["mode"])
    table("dtypes", lambda r: r.trained, lambda e: [e["dtypes"], e["autocast"]])
    ta, tb = [Counter(h for e in r.losses for h in e["targets"]) for r in (a, b)]
    if sum(e["count"] for e in a.losses) != sum(e["count"] for e in b.losses):
        note("target count", first_difference(*[r.by_update(r.losses, lambda e: e["count"]) for r in (a, b)]), "count")
    if ta != tb:
        note("targets", first_difference(*[r.by_update(r.losses, lambda e: e["targets"]) for r in (a, b)]), "multiset")
    pairs = [pairing(r) for r in (a, b)]
    torn = [row for row in pairs[0] if row in pairs[1] and pairs[0][row] != pairs[1][row]]
    if torn and "target count" not in out:
        note("pairing", target_difference(a, b), f"{len(torn)} inputs with other targets")
    table("loss function", lambda r: r.losses, lambda e: [e["name"], e["options"], e["weight"]])
    table("learning rate", lambda r: r.optim, lambda e: [round(x, 12) for x in e["lr"]])
    table("weight decay", lambda r: r.optim, lambda e: e["decay"])
    table("coverage", lambda r: r.optim, lambda e: [(s, c > 0) for c, s in zip(e["changed"], e["sizes"], strict=True)])
    scale = [{u: len(v) for u, v in r.by_update(r.backwards, lambda e: 1).items()} for r in (a, b)]
    if (at := first_difference(*scale)) is not None:
        note("backward calls", at, f"{scale[0].get(at)} | {scale[1].get(at)}")
    ratios = [loss_scales(r) for r in (a, b)]
    if (at := first_difference(*ratios)) is not None:
        note("loss scale", at, f"{ratios[0].get(at)} | {ratios[1].get(at)}")
    ea, eb = Counter(rows_of(a.evaluated)), Counter(rows_of(b.evaluated))
    if ea != eb:
        at = first_difference(*[r.by_update(r.evaluated, lambda e: len(e["rows"])) for r in (a, b)])
        note("evaluated inputs", at, f"{sum(ea.values())} | {sum(eb.values())}, {sum((ea - eb).values())} not seen")
    times = [sorted({e["update"] for e in r.evaluated}) for r in (a, b)]
    if times[0] != times[1]:
        note("evaluation cadence", None, f"{times[0]} | {times[1]}")
    modes = [{e["update"]: {e["mode"] > 0} for e in r.evaluated} for r in (a, b)]
    if (at := first_difference(*modes)) is not None and times[0] == times[1]:
        note("evaluation mode", at, f"{modes[0][at]} | {modes[1][at]}")
    if set(a.files) != set(b.files):
        name = "checkpoint cadence" if b.files else "checkpoint contents"
        note(name, None, f"{sorted(a.files)} | {sorted(b.files)}")
    shared = [n for n in a.files if n in b.files]
    if any(structure(a.files[n]) != structure(b.files[n]) for n in shared):
        note("checkpoint contents", None, "other keys")
    counts = [r.logs.count("\n") for r in (a, b)]
    if counts[0] != counts[1]:
        note("log steps", None, f"{counts[0]} | {counts[1]} lines")
    return out


def target_difference(a, b):
    return first_difference(*[r.by_update(r.losses, lambda e: e["targets"]) for r in (a, b)])


def pairing(run):
    """Targets that each input row met, where there is one target row per input row."""
    pairs, waiting = {}, []
    for e in run.events:
        if e["kind"] == "forward" and e["trained"]:
            waiting = e["rows"]
            for row, target in zip(e["rows"], e.get("targets", []), strict=False):
                pairs.setdefault(row, set()).add(target)
        elif e["kind"] == "loss" and e["trained"] and len(e["targets"]) == len(waiting):
            for row, target in zip(waiting, e["targets"], strict=True):
                pairs.setdefault(row, set()).add(target)
    return pairs


def loss_scales(run):
    """Backward values of an update over the values of its losses."""
    values = run.by_update(run.losses, lambda e: e["value"])
    out = {}
    for update, backs in run.by_update(run.backwards, lambda e: e["value"]).items():
        if len(values.get(update, [])) == len(backs):
            out[update] = round(sum(backs) / sum(values[update]), 3)
    return out


def evaluation_results(run):
    """Mean loss of each evaluation over its targets, where it goes through a loss function."""
    sums = {}
    for e in run.events:
        if e["kind"] == "loss" and not e["trained"]:
            total, count = sums.get(e["update"], (0.0, 0))
            sums[e["update"]] = (total + e["value"] * e["count"], count + e["count"])
    return {update: total / count for update, (total, count) in sums.items()}


def soft(a, b):
    """Distances that rounding also moves: loss, gradient norms, weights, checkpoints."""
    la, lb = a.mean_losses(), b.mean_losses()
    both = [u for u in la if u in lb]
    deltas = {u: abs(la[u] - lb[u]) for u in both}
    norms = [{u: v[0] for u, v in r.by_update(r.optim, lambda e: e["norm"]).items()} for r in (a, b)]
    gradient = {u: abs(norms[0][u] - norms[1][u]) / (norms[0][u] + 1e-12) for u in norms[0] if u in norms[1]}
    shared = [n for n in a.files if n in b.files]
    ea, eb = evaluation_results(a), evaluation_results(b)
    shared_evaluations = [abs(ea[u] - eb[u]) for u in ea if u in eb]
    tail = [u for u in deltas if u >= 0.8 * max(la, default=0)]
    return {
        "mean_abs_loss_delta": sum(deltas.values()) / len(deltas) if deltas else None,
        "max_abs_loss_delta": max(deltas.values(), default=None),
        "late_loss_delta": sum(deltas[u] for u in tail) / len(tail) if tail else None,
        "first_loss_difference": next((u for u in sorted(deltas) if deltas[u] > 1e-4), None),
        "first_gradient_difference": next((u for u in sorted(gradient) if gradient[u] > 1e-3), None),
        "mean_gradient_difference": sum(gradient.values()) / len(gradient) if gradient else None,
        "weights_early": relative(a.weights.get("early", []), b.weights.get("early", [])) if "early" in b.weights else None,
        "weights_final": relative(trained_weights(a), trained_weights(b)),
        "checkpoint_distance": max((relative(models(a.files[n]), models(b.files[n])) for n in shared), default=None),
        "ema_distance": max(
            (tensor_distance(a.files[n].get("ema"), b.files[n].get("ema")) for n in shared if "ema" in a.files[n]), default=None
        ),
        "evaluation_delta": max(shared_evaluations, default=None),
        "bitwise": la == lb and relative(trained_weights(a), trained_weights(b)) == 0.0,
    }


def trained_weights(run):
    """Final weights of the modules that were in use after 20 updates: those that are trained, without averaged copies."""
    return run.weights["final"][: len(run.weights.get("early", run.weights["final"]))]


def growing_means(run, other):
    """Mean loss distance over the first k+1 shared updates, by update: chaos grows with time, damage need not."""
    a, b = run.mean_losses(), other.mean_losses()
    total, out = 0.0, {}
    for k, update in enumerate(sorted(set(a) & set(b))):
        total += abs(a[update] - b[update])
        out[update] = total / (k + 1)
    return out


def models(state):
    """The saved weights of a checkpoint in a fixed order, buffers of integers left out."""
    groups = [(k, v) for k, v in sorted(state.items()) if isinstance(v, dict) and v]
    groups = [(k, v) for k, v in groups if all(isinstance(x, torch.Tensor) for x in v.values())]
    return [v[name].float() for _, v in groups for name in sorted(v) if v[name].is_floating_point()]
