"""Prove the label of each case by running its base and its changed program with hooks: python prove.py [--half all] [--jobs 2]

Resumable: `proof.json` keeps each result with a digest of what was run; runs are kept under the work folder.
"""

import argparse
import functools
import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import record
import torch
from compare import Run, growing_means, hard, soft, tensor_distance

HERE = Path(__file__).resolve().parent
PROOF = HERE / "proof.json"
NUDGE = 1e-7  # the size of a float32 rounding error, as in FIDELITY's nudge
FACTOR = 10  # times the program's own nudge
FLOORS = {
    "mean_abs_loss_delta": 1e-5,
    "mean_gradient_difference": 1e-4,
    "weights_early": 1e-5,
    "weights_final": 1e-5,
    "ema_distance": 1e-5,
    "evaluation_delta": 1e-5,
    "checkpoint_distance": 1e-5,
}
SOFT_NAMES = {
    "mean_abs_loss_delta": "true loss",
    "mean_gradient_difference": "gradient norm",
    "weights_early": "weights",
    "weights_final": "weights",
    "ema_distance": "EMA weights",
    "evaluation_delta": "evaluation result",
}
LIMIT_S = 400
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "record"])


def load_json(path):
    return json.loads(path.read_text())


def digest(*parts):
    h = hashlib.blake2b(digest_size=8)
    for part in parts:
        if isinstance(part, Path):
            for file in sorted(p for p in part.rglob("*") if p.is_file()) if part.is_dir() else [part]:
                h.update(file.name.encode() + file.read_bytes())
        else:
            h.update(str(part).encode())
    return h.hexdigest()


def run_once(folder, program, command, extra=(), environment=None, recorded=True, out="."):
    """Run one command in a work copy; returns the exit status."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TRAINFLASH")}
    env.update({"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})})
    words = command[1:]
    if recorded:
        seed = [] if program["seeded"] else ["--seed", "1"]
        words = ["--out", out, *seed, *extra, "--", *words]
        child = FORKS.Process(target=record_in_child, args=(folder, out, words, environment or {}))
        child.start()
        child.join(LIMIT_S)
        if child.exitcode is None:
            child.kill()
            child.join()
        return child.exitcode
    with open(folder / out / "stdout.txt", "w") as stdout, open(folder / out / "stderr.txt", "w") as stderr:
        done = subprocess.run([sys.executable, *words], cwd=folder, env=env, stdout=stdout, stderr=stderr, timeout=LIMIT_S, check=False)
    return done.returncode


def record_in_child(folder, out, words, environment):
    """Target of a forked process: what `python record.py ...` would do, without importing torch again."""
    os.setsid()  # a session of its own: a fair share of the cores, and workers end with it
    os.chdir(folder)
    os.environ.update(environment)
    multiprocessing.set_start_method("fork", force=True)  # what the program would find
    for number, name in ((1, "stdout.txt"), (2, "stderr.txt")):
        handle = os.open(folder / out / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
    sys.argv = ["record.py", *words]
    record.main()


def prepare(work, base, diff=None):
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(HERE / "programs" / base, work)
    if diff is not None:
        subprocess.run(["patch", "-p1", "-s", "-i", str(diff)], cwd=work, check=True, stdout=subprocess.DEVNULL)


def recorded_run(work, base, diff=None, extra=(), environment=None, resume=False):
    """Run a program (once per content), with its resumed run where asked."""
    program = load_json(HERE / "programs" / base / "program.json")
    key = digest(HERE / "programs" / base, HERE / "record.py", diff or "", extra, environment or {}, resume)
    mark = work / "done.txt"
    if not mark.exists() or mark.read_text() != key:
        prepare(work, base, diff)
        status = run_once(work, program, program["command"], extra, environment)
        if status != 0:
            raise RuntimeError(f"{work.name}: exit {status}: {(work / 'stderr.txt').read_text()[-300:]}")
        if resume:
            for name in program["outputs"]:
                shutil.copytree(work / name, work / f"{name}.first")
            (work / "resumed").mkdir()
            status = run_once(work, program, program["resume"], extra, environment, out="resumed")
            (work / "resumed" / "status").write_text(str(status))
            for name in program["outputs"]:
                shutil.rmtree(work / name)
                (work / f"{name}.first").rename(work / name)
        mark.write_text(key)
    return Run(work, program["outputs"])


@functools.cache
def base_run(folder, base):
    """The base's own recorded run, read once."""
    return Run(folder, load_json(HERE / "programs" / base / "program.json")["outputs"])


def resume_delta(work, run, program):
    """Mean distance of the losses after a resume from those of the run that was not interrupted."""
    folder = work / "resumed"
    if (folder / "status").read_text() != "0":
        return "fails: " + (folder / "stderr.txt").read_text().strip().splitlines()[-1][:120]
    again = Run(folder, [])
    later, whole = [[e["value"] for e in r.losses] for r in (again, run)]
    if not later or len(later) > len(whole):
        return "other number of losses"
    pairs = list(zip(later, whole[-len(later) :], strict=True))[:60]
    return sum(abs(x - y) for x, y in pairs) / len(pairs)


def saved_distance(work, run, program):
    """Distance of the saved files of an unrecorded run from those of a recorded one."""
    files = {p.name: p for name in program["outputs"] for p in (work / name).rglob("*.pt")}
    if set(files) != set(run.files):
        return "other files"
    return max(tensor_distance(torch.load(p), run.files[n]) for n, p in files.items())


def plain_run(work, base, diff=None):
    program = load_json(HERE / "programs" / base / "program.json")
    key = digest(HERE / "programs" / base, diff or "", "plain")
    mark = work / "done.txt"
    if not mark.exists() or mark.read_text() != key:
        prepare(work, base, diff)
        if run_once(work, program, program["command"], recorded=False) != 0:
            raise RuntimeError(f"{work.name}: {(work / 'stderr.txt').read_text()[-300:]}")
        mark.write_text(key)
    return work


def prove_base(root, base):
    """The base's own noise: rerun, nudge up, nudge down, resumed, and without hooks."""
    program = load_json(HERE / "programs" / base / "program.json")
    first = recorded_run(root / f"base-{base}", base, resume=True)
    again = recorded_run(root / f"again-{base}", base)
    nudged = [recorded_run(root / f"nudge{sign}-{base}", base, extra=(f"--nudge={sign * NUDGE}",)) for sign in (1, -1)]
    plain = saved_distance(plain_run(root / f"plain-{base}", base), first, program) if program["seeded"] else None
    noise = [soft(first, n) for n in nudged]
    grown = [growing_means(first, n) for n in nudged]
    return {
        "updates": first.steps[0],
        "evaluations": len({e["update"] for e in first.evaluated}),
        "checkpoints": len(first.files),
        "rerun": {"hard": sorted(hard(first, again)), "bitwise": soft(first, again)["bitwise"]},
        "without_hooks": plain,
        "resume_delta": resume_delta(root / f"base-{base}", first, program),
        "nudge": {k: max((n[k] or 0.0) for n in noise) for k in FLOORS},
        "nudge_mean_until": {str(u): float(f"{max(g[u] for g in grown):.3g}") for u in grown[0]},
    }


def measured_signals(first, changed, noise, grown):
    """Names of all signals that differ, hard ones by equality, soft ones against the nudge."""
    signals = hard(first, changed)
    values = soft(first, changed)
    for key, name in SOFT_NAMES.items():
        limit = max(FACTOR * noise[key], FLOORS[key])
        if values[key] is not None and values[key] > limit:
            update = values["first_loss_difference"] if name == "true loss" else values["first_gradient_difference"]
            update = update if name in ("true loss", "gradient norm") else None
            signals.setdefault(name, {"update": update, "evidence": f"{key} {values[key]:.2g}, limit {limit:.2g}"})
    for update, mean in growing_means(first, changed).items():
        if mean > max(FACTOR * grown[str(update)], FLOORS["mean_abs_loss_delta"]):
            evidence = f"mean loss delta {mean:.2g} until update {update}, nudge {grown[str(update)]:.2g}"
            signals.setdefault("true loss", {"update": values["first_loss_difference"], "evidence": evidence})
            break
    return signals, values


def prove_case(root, folder, bases):
    case = load_json(folder / "case.json")
    base, diff = case["base"], folder / "change.diff"
    program = load_json(HERE / "programs" / base / "program.json")
    first = base_run(root / f"base-{base}", base)
    work = root / f"case-{case['name']}"
    changed = recorded_run(work, base, diff, environment=case.get("environment"), resume=bool(case.get("resume")))
    noise = bases[base]["nudge"]
    signals, values = measured_signals(first, changed, noise, bases[base]["nudge_mean_until"])
    result = {"label": case["label"], "class": case["class"]}
    if case.get("resume"):
        delta = resume_delta(work, first, program)
        result["resume_delta"] = delta
        if isinstance(delta, str) or delta > max(FACTOR * noise["mean_abs_loss_delta"], 1e-4):
            signals["checkpoint resume"] = {"update": None, "evidence": str(delta)}
    distance = values["checkpoint_distance"]
    if distance is not None and distance > max(FACTOR * noise["checkpoint_distance"], 1e-5) and "weights" not in signals:
        signals.setdefault("checkpoint contents", {"update": None, "evidence": f"weights differ by {distance:.2g}"})
    if case.get("environment"):
        free = recorded_run(root / f"free-{case['name']}", base, diff)
        result["without_environment"] = sorted(hard(changed, free))
    if case.get("plain"):
        plain = plain_run(root / f"plain-{case['name']}", base, diff)
        result["without_hooks"] = saved_distance(plain, changed, program)
    updates = [s["update"] for s in signals.values() if s["update"] is not None]
    result["visible_from_update"] = min(updates) if updates else None
    result["bitwise"] = values["bitwise"]
    result["signals"] = signals
    result["soft"] = {k: v for k, v in values.items() if k != "bitwise"}
    result["proved"], result["doubt"] = judge(case, result, signals)
    return result


def claim(folder):
    """What a case claims, without what the proof itself fills in."""
    return {k: v for k, v in load_json(folder / "case.json").items() if k not in ("visible_from_update", "why")}


def judge(case, result, signals):
    """Is the label right? Broken and consent: the named signals differ. Honest: none does."""
    if case["label"] == "honest":
        return not signals, sorted(signals)
    differs = set(signals)
    if case.get("environment") and result["without_environment"]:
        differs.add("timed and untimed work")
    if case.get("plain") and result["without_hooks"] != 0.0:
        differs.add("timed and untimed work")
    missing = [s for s in case["signals"] if s not in differs]
    unwanted = [s for s in case.get("unchanged", []) if s in differs]
    return not missing and not unwanted, [*(f"not seen: {s}" for s in missing), *(f"differs: {s}" for s in unwanted)]


def write(proof):
    handle, name = tempfile.mkstemp(dir=HERE, suffix=".tmp")
    with os.fdopen(handle, "w") as f:
        json.dump(proof, f, indent=1, sort_keys=True, default=str)
        f.write("\n")
    os.chmod(name, 0o644)
    os.replace(name, PROOF)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("open", "kept", "all"), default="all")
    parser.add_argument("--case", action="append", help="only these cases")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "fidelity-proof")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.work.mkdir(parents=True, exist_ok=True)
    halves = ("open", "kept") if args.half == "all" else (args.half,)
    folders = [p.parent for half in halves for p in sorted((HERE / half).glob("*/case.json"))]
    folders = [f for f in folders if not args.case or f.name in args.case]
    proof = load_json(PROOF) if PROOF.exists() else {"bases": {}, "cases": {}}
    tools = (HERE / "record.py", HERE / "compare.py", HERE / "prove.py")
    failed, lock = [], threading.Lock()

    def run(table, name, key, work):
        old = proof[table].get(name)
        if old is None or old["digest"] != key:
            try:
                result = {**work(), "digest": key}
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                failed.append(name)
                print(f"{name}: {error}", flush=True)
                return
            with lock:
                proof[table][name] = result
                write(proof)
        entry = proof[table][name]
        if table == "cases":
            print(f"{'proved' if entry['proved'] else 'NOT PROVED'} {entry['label']:8} {name} {entry['doubt'] or ''}", flush=True)
            if not entry["proved"]:
                failed.append(name)

    needed = sorted({load_json(f / "case.json")["base"] for f in folders})
    with ThreadPoolExecutor(args.jobs) as pool:
        list(
            pool.map(
                lambda b: run("bases", b, digest(HERE / "programs" / b, *tools), lambda: prove_base(args.work, b)),
                needed,
            )
        )
        list(
            pool.map(
                lambda f: run(
                    "cases",
                    f.name,
                    digest(claim(f), f / "change.diff", HERE / "programs" / load_json(f / "case.json")["base"], *tools),
                    lambda: prove_case(args.work, f, proof["bases"]),
                ),
                folders,
            )
        )
    print(f"{len(folders) - len(set(failed))} of {len(folders)} proved")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
