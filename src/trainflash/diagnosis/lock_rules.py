"""Python threads beside training that hold the interpreter's lock: all phases get slower, and no line of the training thread says why."""

from __future__ import annotations

from trainflash.diagnosis.calm import COMPUTE
from trainflash.diagnosis.claims import Claim, at, claim, percent, shown
from trainflash.diagnosis.fetching import lock_holders, standing
from trainflash.diagnosis.periodic_rules import writes
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Kind, ThreadBeside


def lock_held_beside(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """A thread of the owner's runs Python while the training thread stands still in the middle of computing.

    It stands still where it is neither on a core nor runnable: torch lets go of the lock in each operator and has to get it back. The
    finding is named by what the thread does: it makes batches, it writes, or anything else. Abstains where no other thread was busy, and
    where a device, other ranks, or compute threads that work are waited for as well.
    """
    found, compute, data = lock_holders(signals.summary, limits), signals.compute or 0.0, signals.data
    if not found:
        return ()
    busiest, still = found[0], standing(signals.summary)
    fetching = data.held_up if data is not None else 0.0
    share = min(compute * still + fetching, sum(each.cpu_share for each in found))
    if share < limits.listed:
        return ()
    kind, phase = _does(busiest, signals, limits)
    return (
        claim(
            kind,
            phase,
            "host",
            share,
            limits,
            phases=(*COMPUTE, "Data") if fetching else COMPUTE,
            summary=f"the thread {busiest.name} runs Python and holds the interpreter's lock: training stands still for "
            f"{shown(share)} of the time{at(busiest.location)}",
            evidence=(
                percent("standing still between a forward and its update", still),
                percent("forward, backward and update, share of wall time", compute),
                *((percent("standing still while batches are made, share of wall time", fetching),) if fetching else ()),
                *(percent(f"a core, used by the thread {each.name}", each.cpu_share) for each in found),
            ),
            location=busiest.location,
        ),
    )


def _does(thread: ThreadBeside, signals: Signals, limits: Thresholds) -> tuple[Kind, str]:
    if thread.makes:
        return "input_cpu", "Data"
    return ("logging", "Log") if thread.location and writes(thread.location, signals, limits) == "logging" else ("host_code", "Other")
