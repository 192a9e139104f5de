"""Verdicts that are handed on: one file with what a verdict is about and rests on, and the same comparison on another machine."""
