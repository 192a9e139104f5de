"""Waiting for a disk or another machine: by threads, ahead of time, or only for the part that is needed."""
