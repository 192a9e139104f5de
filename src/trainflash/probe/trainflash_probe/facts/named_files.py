"""The file that a sample is made from, where a list of its data set says it. Only what is stored is read."""

from __future__ import annotations

import os
from pathlib import PurePath

from ..guard import swallow
from ..lengths import length_of
from ..objects import attributes_of, is_a
from ..wrapped import MOST_INSIDE, is_torchs

_NAMED = ("samples", "imgs", "images", "files", "paths", "filenames", "file_names", "image_paths", "img_paths", "image_files", "file_list")
_MAX_ATTRIBUTES = 100


def file_of(dataset: object, index: int):
    """Name of the file that sample `index` is made from; None where nobody says it."""
    try:
        for _ in range(MOST_INSIDE):
            inner = _inside(dataset, index)
            if inner is None:
                return _named(dataset, index)
            dataset, index = inner
    except Exception as error:
        swallow("file of sample", error)
    return None


def _inside(dataset: object, index: int):
    """(data set, index there) of what torch's own data sets stand around; None for others."""
    stored = attributes_of(dataset)
    if is_torchs(dataset, "Subset") and is_a(stored.get("indices"), list, tuple):
        indices = stored["indices"]
        return stored["dataset"], int((list if is_a(indices, list) else tuple).__getitem__(indices, index))
    if is_torchs(dataset, "ConcatDataset"):
        ends = stored["cumulative_sizes"]
        part = next(at for at, end in enumerate(ends) if index < end)
        return stored["datasets"][part], index - (ends[part - 1] if part else 0)
    return None


def _named(dataset: object, index: int):
    attributes = attributes_of(dataset)
    length = length_of(dataset)
    for name in (*_NAMED, *list(attributes)[:_MAX_ATTRIBUTES]):
        found = _path_in(attributes.get(name), index, length, certain=name in _NAMED)
        if found is not None:
            return found
    return None


def _path_in(values: object, index: int, length, certain: bool):
    if type(values).__module__.startswith("pandas.") and hasattr(values, "iloc") and hasattr(values, "columns"):
        row = tuple(values.iloc[index])[:8] if length in (len(values), None) and index < len(values) else ()
        return next((str(value) for value in row if _is_path(value, certain=False)), None)
    if type(values) not in (list, tuple) or length not in (len(values), None) or index >= len(values):
        return None
    value = values[index]
    if type(value) in (tuple, list) and value:
        value = value[0]
    return str(value) if _is_path(value, certain) else None


def _is_path(value: object, certain: bool) -> bool:
    if type(value).__module__.partition(".")[0] == "pathlib" and is_a(value, PurePath):
        return True
    if type(value) is not str or not 0 < len(value) <= 4096 or "\n" in value:
        return False
    return certain or os.sep in value or (" " not in value and 1 < len(os.path.splitext(value)[1]) <= 6)
