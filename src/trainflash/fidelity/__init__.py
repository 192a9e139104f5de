"""Does it still train the same? Runs both sides untimed under the recorder, and compares what they did update by update."""

from trainflash.fidelity.judgement import compare
from trainflash.fidelity.record import Record, read
from trainflash.fidelity.trial import check

__all__ = ["Record", "check", "compare", "read"]
