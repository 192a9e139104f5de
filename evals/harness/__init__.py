"""Tasks, attempts, judging and scores of `evals/run.py`."""
