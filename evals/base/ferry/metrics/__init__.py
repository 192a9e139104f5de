"""Figures of an evaluation."""

from ferry.metrics import classification, ranking, regression
from ferry.metrics.collection import MetricCollection

__all__ = ["MetricCollection", "classification", "ranking", "regression"]
