"""Adversarial texture strips for synthetic timber."""
