"""A command of ours as a Slurm job: the same engine on an allocation, while the login side waits.

What is submitted is one job that runs the very command that was typed. So both sides of every pair run in one allocation, freezing,
pinning and the net clock work as ever, launchers of the owner's (`srun`, `torchrun`, `mpirun`) find the allocation around them, and what
a killed job left is gone on with as after any kill. Submitting each start by itself was rejected: baseline and candidate would land on
different nodes at different times, and every start would wait in the queue.
"""

from __future__ import annotations

from trainflash.launch.slurm.login import watch
from trainflash.launch.slurm.nodes import ask_a_node
from trainflash.launch.slurm.queue import cancel
from trainflash.launch.slurm.submission import Submitted, require_slurm, submit
from trainflash.launch.slurm.wanted import Wanted, wanted

__all__ = ["Submitted", "Wanted", "ask_a_node", "cancel", "require_slurm", "submit", "wanted", "watch"]
