import json
import os


def settings(path):
    with open(path) as file:
        return json.load(file)


def prepare(values):
    """Tells the numeric libraries about the machine; has to run before they are imported."""
    cores = 1 if os.environ.get("PLANTED_FIX") == "1" else values["cores"]
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(cores)
