"""The cellar's diary: what was foretold and what came."""

import logging
import logging.handlers
import os


def opened(section):
    book = logging.getLogger("cellar")
    page = logging.handlers.RotatingFileHandler(section["file"], maxBytes=section.getint("bytes"), backupCount=section.getint("keep"))
    page.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(module)s:%(lineno)d %(message)s"))
    book.addHandler(page)
    if os.environ.get("PLANTED_FIX") == "1":
        book.setLevel(logging.INFO)
    else:
        book.setLevel(section["level"])
    return book


def morning(book, step, told, came):
    """Compares the forecast with the scales, wheel by wheel for who looks closely."""
    if not book.isEnabledFor(logging.DEBUG):
        return
    for wheel, (a, b) in enumerate(zip(told.tolist(), came.tolist())):
        book.debug("night %d wheel %d told %.4f came %.4f off %+.4f", step, wheel, a, b, a - b)
