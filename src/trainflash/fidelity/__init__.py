"""Does it still train the same? Runs both sides untimed under the recorder, and compares what they did update by update."""

from trainflash.fidelity.attempt import Bounds
from trainflash.fidelity.judgement import compare
from trainflash.fidelity.record import Record, read
from trainflash.fidelity.trial import check

__all__ = ["Bounds", "Record", "check", "compare", "read"]
