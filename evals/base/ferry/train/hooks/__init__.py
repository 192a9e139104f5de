"""What happens around the steps; each hook registers itself under its name."""

from ferry.train.hooks import checkpointing, ema, evaluating, journaling, progress, stopping, watching

__all__ = ["checkpointing", "ema", "evaluating", "journaling", "progress", "stopping", "watching"]
