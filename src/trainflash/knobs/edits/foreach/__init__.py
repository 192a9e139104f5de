"""Loops over tensors: one operation on a list of them in place of one for each."""
