"""Was a fidelity verdict right? Pure functions over a case and the stored verdict."""

from dataclasses import dataclass

# What each check of the product says, in the words of the catalogue.
SAYS = {
    "updates": {"updates"},
    "batch": {"samples", "loss scale", "updates"},
    "input shapes": {"input width", "inputs"},
    "samples": {"samples", "inputs", "distinct samples"},
    "order": {"order"},
    "streams of workers": {"distinct samples", "inputs"},
    "targets": {"targets", "pairing"},
    "train mode": {"mode"},
    "optimizer": {"weight decay", "weights"},
    "learning rate and weight decay": {"learning rate", "weight decay"},
    "coverage": {"coverage"},
    "clipping": {"gradient norm"},
    "data types": {"dtypes"},
    "input values": {"inputs"},
    "evaluation inputs": {"evaluated inputs", "mode"},
    "evaluation results": {"evaluation result"},
    "evaluation cadence": {"evaluation cadence"},
    "checkpoint contents": {"checkpoint contents", "checkpoint resume"},
    "checkpoint values": {"checkpoint contents", "checkpoint resume"},
    "checkpoint files": {"checkpoint contents", "checkpoint resume"},
    "resumed from checkpoint": {"checkpoint contents", "checkpoint resume"},
    "checkpoint cadence": {"checkpoint cadence"},
    "log cadence": {"log steps"},
    "written records": {"log steps", "evaluation cadence"},
    "loss": {"true loss", "loss scale"},
    "first loss": {"true loss", "loss scale"},
    "losses in distribution": {"true loss", "loss scale"},
    "gradients": {"gradient norm"},
    "gradient vectors": {"gradient norm", "weights"},
    "gradient norms in distribution": {"gradient norm"},
    "update norms": {"weights"},
    "step vectors": {"weights"},
    "weights": {"weights"},
    "final weights": {"weights"},
    "step sizes in distribution": {"weights"},
    "weights in distribution": {"weights"},
    "averaged weights": {"EMA weights", "weights", "evaluation result"},
    "timed work": {"timed and untimed work"},
    "exit code": {"updates"},
    "time": {"updates"},
}
# The name that the product asks consent under, and the check that must say it.
CONSENT = {
    "evaluation cadence": ("cadence", "evaluation cadence"),
    "checkpoint cadence": ("cadence", "checkpoint cadence"),
}


@dataclass(frozen=True)
class Score:
    right: bool
    note: str


def consent_name(case: dict) -> str:
    """The product's name for the change that a consent case needs."""
    return CONSENT.get(case["consent"], (case["consent"], ""))[0]


def score(case: dict, result: dict) -> Score:
    """A failed run is wrong, whatever the case is."""
    if result.get("error"):
        return Score(False, result["error"][:160])
    verdict, changed = result["verdict"], result["changed"]
    failing = [check["name"] for check in result["checks"] if check["ok"] is False]
    found = f"{verdict}: {', '.join(changed)}" if changed else verdict
    if case["label"] == "broken":
        named = {word for name in failing for word in SAYS.get(name, ())}
        hit = sorted(named & set(case["signals"]))
        if verdict in ("same", "close"):
            return Score(False, f"MISSED, {found}")
        return Score(bool(hit), f"{found}; {'names ' + ', '.join(hit) if hit else 'names none of ' + ', '.join(case['signals'])}")
    if case["label"] == "honest":
        ok = verdict in ("same", "close")
        return Score(ok, found if ok else f"REFUSED, {found}; {'; '.join(result['reasons'])[:200]}")
    name, check = consent_name(case), CONSENT.get(case["consent"], ("", ""))[1]
    asked = set(changed) - {"numerics"} == {name} and (not check or check in failing)
    agreed = result.get("agreed") or {}
    passes = agreed.get("verdict") in ("changed", "close", "same") and set(agreed.get("changed", ["?"])) <= {name, "numerics"}
    return Score(
        asked, f"asks for {found}" + ("" if passes or not agreed else f"; agreed to: {agreed['verdict']}: {', '.join(agreed['changed'])}")
    )
