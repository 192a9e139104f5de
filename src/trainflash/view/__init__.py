"""What one run sees and may write, and the throw-away copy in which somebody edits.

Best is a private mount namespace in which the checkout lies on the project's original path above a fresh layer, the rest of the file
system is read-only, and HOME and /tmp are layered. Else Landlock confines writing to a copy of the checkout; else nothing does, and
the original is compared before and after. `open_view` tries for real which holds.
"""

from trainflash.view.opening import View, open_view, protection, sweep
from trainflash.view.rooms import Change, Room, changes_in, copied, open_room

__all__ = ["Change", "Room", "View", "changes_in", "copied", "open_room", "open_view", "protection", "sweep"]
