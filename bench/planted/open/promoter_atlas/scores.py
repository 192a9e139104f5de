"""Figures for the report: accuracy, macro F1 and the area under each class's curve."""

import numpy as np
from genome import CLASSES


def rank_area(scores: np.ndarray, positive: np.ndarray) -> float:
    """The probability that a member of the class is ranked before the others."""
    if positive.all() or not positive.any():
        return float("nan")
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    count = int(positive.sum())
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(scores) - count)))


def report(prediction) -> dict[str, float]:
    logits, labels = prediction.predictions, prediction.label_ids
    chosen = logits.argmax(axis=-1)
    table = np.zeros((len(CLASSES), len(CLASSES)), dtype=int)
    for truth, guess in zip(labels, chosen, strict=True):
        table[truth, guess] += 1
    hits = table.diagonal()
    f1 = 2 * hits / np.maximum(table.sum(0) + table.sum(1), 1)
    figures = {"accuracy": float((chosen == labels).mean()), "macro_f1": float(f1.mean())}
    for number, name in enumerate(CLASSES):
        figures[f"area_{name}"] = rank_area(logits[:, number], labels == number)
    return figures
