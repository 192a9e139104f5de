"""An author: an assistant's command line that writes a patch from a brief, where neither a setting nor a transform does it.

It runs in a room (see `view`): a throw-away copy without `.git`, with the project, the sandbox's records and the judge out of its reach.
What it leaves there is taken as a diff; what is no small change of the project's own sources is refused with a line that says why.
"""

from trainflash.author.answers import Answer, Limits, Task
from trainflash.author.commands import Author, named
from trainflash.author.presets import NAMES, PRESETS
from trainflash.author.running import write

__all__ = ["NAMES", "PRESETS", "Answer", "Author", "Limits", "Task", "named", "write"]
