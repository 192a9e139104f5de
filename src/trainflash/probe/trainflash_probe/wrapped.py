"""Torch's own data sets around the owner's: what a `Subset` or a `ConcatDataset` takes its samples from."""

from __future__ import annotations

from .objects import attributes_of

MOST_INSIDE = 8  # data sets around each other
_HOME = "torch.utils.data.dataset"


def is_torchs(dataset: object, name: str) -> bool:
    """Whether it is of that class of torch's, and not of one derived from it."""
    kind = type(dataset)
    return kind.__module__ == _HOME and kind.__name__ == name


def innermost(dataset: object) -> object:
    """The data set that makes the samples; of several that are joined the first, where all are of one class."""
    for _ in range(MOST_INSIDE):
        stored = attributes_of(dataset)
        if is_torchs(dataset, "Subset"):
            dataset = stored["dataset"]
        elif is_torchs(dataset, "ConcatDataset") and len({type(each) for each in stored["datasets"]}) == 1:
            dataset = stored["datasets"][0]
        else:
            break
    return dataset
