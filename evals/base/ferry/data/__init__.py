"""Tickets on disk → batches of tensors."""
