"""The edits: where each can be made in a program, and the bytes it replaces."""
