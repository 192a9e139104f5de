"""The verbs, and the only place that knows their order: sandbox → diagnose → optimize → verify → write back.

Each verb reads its input from the sandbox's files and leaves its result there, so any of them can start where another stopped.
"""
