"""ferry: routes support tickets. Reads tickets, learns queue and urgency, writes checkpoints and a journal."""

__all__ = ["__version__"]

__version__ = "1.4.2"
