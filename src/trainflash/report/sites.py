"""Cost sites in words, the same in every medium: where, in which phase, what is hottest below, what it is when it is called back."""

from __future__ import annotations

from collections.abc import Sequence

from trainflash.report import figures
from trainflash.schema import Site, SiteOperator

CALLED_BACK = {"hook": "a hook", "metric": "a metric", "tracker": "a tracker or profiler", "engine": "called beside the nodes of the graph"}
WORKERS = "workers"
WORKERS_NOTE = f"{WORKERS}: share of the workers' own time"
_CALLERS = 2
_TELLING = 0.25  # an operator that takes less of its line's time says nothing about it


def phase(site: Site) -> str:
    """`Fwd+Bwd` for a line that costs both ways; a worker's time is no phase of the step."""
    if site.role == "worker":
        return WORKERS
    if site.phase != "Fwd" or not site.backward:
        return site.phase
    return "Fwd+Bwd" if site.forward else "Bwd"


def main_phase(site: Site) -> str:
    """The phase whose colour it has."""
    return phase(site).partition("+")[0]


def place(site: Site) -> str:
    """The line; of a loop that runs in a library, the owner's line that started it too."""
    loop = f", in the loop of {site.under}" if site.under else ""
    return figures.place(site.location) + loop


def hottest(site: Site) -> str:
    """The hottest library function below the line; "" where the line itself is the end."""
    end = site.path[-1] if site.path else None
    return f"{function(end.function)} ({end})" if end else ""


def manner(site: Site) -> str:
    """What it is when it is called back; "" for the network itself, and outside of it."""
    return CALLED_BACK.get(site.called_back, site.called_back)


def operator(site: Site) -> str:
    """Its costliest call of torch, where that tells something; with what this machine needs for it, where that is less."""
    first = site.operators[0] if site.operators else None
    if first is None or first.share < _TELLING * site.share:
        return ""
    least = "" if first.floor_ms is None or first.floor_ms >= _ms(first) else f", {figures.ms(first.floor_ms)} at least on this machine"
    calls = "" if first.calls == 1 else f" {figures.number(first.calls).removesuffix('.00').removesuffix('.0')}×"
    return f"{first.name}{calls}: {figures.ms(_ms(first))} a step{least}"


def callers(site: Site) -> str:
    """The owner's lines that led to it, nearest first: `called at train.py:45 in validate`; "" where only the script itself did."""
    told = [each for each in site.callers[:_CALLERS] if not each.function.startswith("<") and each != site.under]
    return f"called at {', '.join(f'{each} in {function(each.function)}' for each in told)}" if told else ""


def below(site: Site) -> list[str]:
    """All that is said of a site beneath its line: `a metric: Metric.forward (torchmetrics/metric.py:315)`, its operator, its callers."""
    called = ": ".join(each for each in (manner(site), hottest(site)) if each)
    return [each for each in (called, operator(site), callers(site)) if each]


def briefly(sites: Sequence[Site]) -> str:
    """All on one line: `68.2 % train.py:29 (a metric); 16.0 % train.py:27`."""
    said = [f"{figures.percent(site.share)}{of_the_workers(site)} {site.location}" for site in sites]
    return "; ".join(f"{each} ({manner(site)})" if manner(site) else each for each, site in zip(said, sites, strict=True))


def function(name: str) -> str:
    """A function's name as people say it: `f.<locals>.<lambda>` → `f.<lambda>`."""
    return name.replace(".<locals>", "")


def of_the_workers(site: Site) -> str:
    """What a share is of, where that is not the step."""
    return " of the workers' time" if site.role == "worker" else ""


def _ms(made: SiteOperator) -> float:
    return made.ms + made.backward_ms
