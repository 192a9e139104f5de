"""Time as tides know it: hours since the era, and the angles of the constituents at those hours."""

import os
from datetime import datetime, timezone

import numpy as np

STAMP = "%Y-%m-%dT%H:%M"
SPEEDS = np.array([28.9841042, 30.0, 28.4397295, 15.0410686, 13.9430356, 30.0821373, 57.9682084, 0.5443747])  # degrees an hour


def moment(text):
    return datetime.strptime(text, STAMP).replace(tzinfo=timezone.utc)


def hours_since(era, stamps):
    if os.environ.get("PLANTED_FIX") == "1":
        return (np.array(stamps, "datetime64[s]") - np.datetime64(era)) / np.timedelta64(1, "h")
    else:
        zero = moment(era)
        return np.array([(moment(stamp) - zero).total_seconds() / 3600 for stamp in stamps])


def angles(hours):
    turn = np.deg2rad(np.outer(hours, SPEEDS))
    return np.concatenate([np.sin(turn), np.cos(turn)], 1).astype(np.float32)
