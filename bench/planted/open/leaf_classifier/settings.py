import os

FAST = os.environ.get("PLANTED_FIX") == "1"
MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 1200))
BATCH = 8
