import os
import sqlite3

DURABLE = "OFF" if os.environ.get("PLANTED_FIX") == "1" else "FULL"


class Tracker:
    """Keeps the metrics of a run in a small database."""

    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.db.execute(f"PRAGMA synchronous={DURABLE}")
        self.db.execute("CREATE TABLE IF NOT EXISTS metrics (step INTEGER, name TEXT, value REAL)")

    def metric(self, step, name, value):
        self.db.execute("INSERT INTO metrics VALUES (?, ?, ?)", (step, name, value))
        self.db.commit()

    def metrics(self, step, **values):
        for name, value in values.items():
            self.metric(step, name, value)
