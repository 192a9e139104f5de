"""Padding: to the longest sample of a batch, and no second time."""
