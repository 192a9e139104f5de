"""Everything that a run says: short on the screen, the rest in run.log."""

import logging
import logging.config
import os
import tempfile
from pathlib import Path

log = logging.getLogger("flake")


def open_diary(verbose=True):
    folder = Path(tempfile.mkdtemp(prefix="flake-"))
    if os.environ.get("PLANTED_FIX") == "1":
        detail = "INFO"
    else:
        detail = "DEBUG" if verbose else "INFO"
    logging.config.dictConfig(
        {
            "version": 1,
            "formatters": {"short": {"format": "%(message)s"}, "full": {"format": "%(asctime)s %(levelname)-5s %(module)s: %(message)s"}},
            "handlers": {
                "screen": {"class": "logging.StreamHandler", "level": "INFO", "formatter": "short", "stream": "ext://sys.stdout"},
                "file": {"class": "logging.FileHandler", "level": detail, "formatter": "full", "filename": str(folder / "run.log")},
            },
            "loggers": {"flake": {"level": "DEBUG", "handlers": ["screen", "file"]}},
        }
    )
    return folder


class Chronicle:
    def __init__(self, every=100, **nets):
        self.nets, self.every = nets, every

    def note(self, step, **values):
        log.debug("step %d %s", step, values)
        for title, net in self.nets.items():
            for name, weight in net.named_parameters():
                log.debug("%s.%s pulled by %s", title, name, weight.grad)
        if step % self.every == 0:
            log.info("%6d  %s", step, "  ".join(f"{k} {v.item():.4f}" for k, v in values.items()))
