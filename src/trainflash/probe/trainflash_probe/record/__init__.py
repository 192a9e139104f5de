"""The record of a training, for runs that ask whether it still trains the same."""
