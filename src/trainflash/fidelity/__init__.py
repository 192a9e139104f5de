"""Does it still train the same? Runs both sides untimed under the recorder, and compares what they did update by update."""

from trainflash.fidelity import convergence, metric, work
from trainflash.fidelity.attempt import Bounds
from trainflash.fidelity.judgement import compare
from trainflash.fidelity.metric import Metric
from trainflash.fidelity.outcome import NONE_LEFT
from trainflash.fidelity.record import Record, read
from trainflash.fidelity.reuse import environment, evaluated_every, interpreter, whole_steps
from trainflash.fidelity.trial import check

__all__ = [
    "NONE_LEFT",
    "Bounds",
    "Metric",
    "Record",
    "check",
    "compare",
    "convergence",
    "environment",
    "evaluated_every",
    "interpreter",
    "metric",
    "read",
    "whole_steps",
    "work",
]
