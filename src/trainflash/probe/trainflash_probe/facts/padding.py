"""How much of a batch is padding: a mask of the batch says so, or a constant run at one end of sequences of unequal length.

A run counts only if it looks like padding: its value is one value for all rows, it hardly occurs elsewhere in the rows, the runs differ
in length, and they stand at one end only. Borders of images, one-hot rows and constant features fail one of these.
"""

from __future__ import annotations

from ..nested import memory_of

MIN_WIDTH = 4
MIN_WAVE = 1000  # samples; a shorter 2-d float row is a row of features
MOST_CHANNELS, LEAST_SAMPLES = 16, 32  # own: of (rows, channels, samples); other 3-d floats are (rows, steps, features)
MOST_ELEMENTS = 1 << 16  # of one batch that are looked at
MOST_VALUES = 64
ELSEWHERE = 0.02  # most of the other elements that may equal the padding
OTHER_END = 0.1  # most of the run's elements that may stand at the other end


class Runs:
    """Constant runs at one end of rows, over all batches looked at; by value."""

    def __init__(self) -> None:
        self.by_value: dict = {}  # value -> [elements in runs, elements elsewhere, equal ones elsewhere, lengths seen, see `common`]
        self.elements = 0

    def add(self, run, values, equal_in_row, width: int) -> None:
        """`run` is the length of each row's run, `equal_in_row` how many elements of the row equal its last one."""
        self.elements += width * len(run)
        for row, length in enumerate(run):
            value, equal = values[row], equal_in_row[row]
            entry = self.by_value.get(value)
            if entry is None:
                if len(self.by_value) >= MOST_VALUES:
                    continue
                entry = self.by_value[value] = [0, 0, 0, set(), 0]
            if length > 1:
                entry[0] += length
            entry[1] += width - length
            entry[2] += equal - length
            if len(entry[3]) < 3:
                entry[3].add(length)
        shortest = min(run, default=0)
        if shortest > 1 and len(set(values)) == 1 and values[0] in self.by_value:
            self.by_value[values[0]][4] += shortest * len(run)

    def padding(self) -> tuple:
        """(elements of the run that looks like padding, its value); 0 and None where none does."""
        if not self.by_value:
            return 0, None
        value = max(self.by_value, key=lambda each: self.by_value[each][0])
        inside, others, equal, lengths, _ = self.by_value[value]
        if inside == 0 or len(lengths) < 2 or equal > ELSEWHERE * max(1, others):
            return 0, None
        return inside, value

    def common(self) -> int:
        """Elements of `padding` that all rows of their batch have, so that none would be left of them at the width of its longest row."""
        inside, value = self.padding()
        return self.by_value[value][4] if inside else 0


class Padding:
    """Adds up over batches what masks and runs say; a mask is believed first."""

    def __init__(self) -> None:
        self.masked = self.mask_elements = self.masked_in_common = 0
        self._ends = (Runs(), Runs())  # at the end, at the begin
        self._unreadable = False

    def look(self, named: list) -> None:
        """`named`: (name, tensor) of one batch, host memory only."""
        if self._unreadable:
            return
        try:
            if not self._mask(named):
                self._sequence(named)
        except (RuntimeError, TypeError, ImportError):  # a type that numpy does not have, or no numpy
            self._unreadable = True

    def totals(self) -> tuple:
        """(elements looked at, elements that are padding, of these those that no row of their batch needs)."""
        if self.mask_elements:
            return self.mask_elements, self.masked, self.masked_in_common
        elements = self._ends[0].elements
        counts = [runs.padding()[0] for runs in self._ends]
        more, less = max(counts), min(counts)
        if less > OTHER_END * more:
            return elements, 0, 0
        return elements, more, self._ends[counts.index(more)].common()

    def _mask(self, named: list) -> bool:
        for name, tensor in named:
            if (name and not _says_mask(name)) or tensor.dim() < 2 or tensor.numel() == 0:
                continue
            numbers = _of_places(rows_of(tensor))
            if numbers is None or numbers.shape[1] < MIN_WIDTH or not (name or _are_truths(numbers)):
                continue
            values = numbers.astype("bool")
            kept = ~values if "pad" in name else values
            ends = kept.shape[1] - kept[:, ::-1].argmax(axis=1)  # one past the last kept element of each row
            begins = kept.argmax(axis=1)
            any_kept = kept.any(axis=1)
            if not ((ends - begins)[any_kept] == kept.sum(axis=1)[any_kept]).all():
                continue  # holes: a mask of something else
            if not name and not _leaves_out(kept, main_input([each for each in named if each[1] is not tensor])):
                continue
            self.mask_elements += kept.size
            self.masked += int(kept.size - kept.sum())
            self.masked_in_common += int(kept.size - (ends - begins)[any_kept].max(initial=0) * len(kept))
            return True
        return False

    def _sequence(self, named: list) -> None:
        tensor = main_input(named)
        if tensor is None or tensor.dim() < 2 or tensor.numel() == 0:
            return
        signals = tensor.dim() == 3 and tensor.is_floating_point() and _are_signals(*tensor.shape[1:])
        if tensor.shape[1] < MIN_WIDTH and not signals:
            return
        whole = tensor.dim() == 2 and not tensor.is_floating_point()
        wave = tensor.dim() == 2 and tensor.is_floating_point() and tensor.shape[1] >= MIN_WAVE
        vectors = tensor.dim() == 3 and tensor.is_floating_point()
        parts = tensor.dim() == 3 and not vectors
        if not (whole or wave or vectors or parts):
            return
        rows = rows_of(tensor)
        if parts and not _are_texts(rows):
            return
        if signals and (tensor.shape[1] < MIN_WIDTH or _ends_in_silence(rows)):
            rows = rows.any(axis=1)  # False: no channel has a value
        elif vectors or parts:
            rows = rows.any(axis=2)  # False: a zero vector
        elif wave:
            rows = rows != 0
        width = rows.shape[1]
        for number, runs in enumerate(self._ends):
            seen = rows if number else rows[:, ::-1]
            differs = seen != seen[:, :1]
            run = differs.argmax(axis=1)
            run[~differs.any(axis=1)] = width
            values = seen[:, 0]
            if not whole:
                run = run * ~values  # only zeros can be padding
            equal = width - differs.sum(axis=1)
            runs.add(run.tolist(), values.tolist(), (equal if whole else equal * ~values).tolist(), width)


def _of_places(rows):
    """A mask as (rows, places), whatever dimensions of one it has to be multiplied with: (rows, 1, 1, places), (rows, places, 1).

    None for a mask of pairs of places, and for one in floats that says more than 0 and 1, as one that is added to scores does.
    """
    places = rows.reshape(rows.shape[0], *(size for size in rows.shape[1:] if size != 1))
    if places.ndim != 2 or (places.dtype.kind == "f" and not _are_truths(places)):
        return None
    return places


def _are_truths(numbers) -> bool:
    return bool(((numbers == 0) | (numbers == 1)).all())


def _leaves_out(kept, tensor) -> bool:
    """Whether a nameless part of a batch is the mask of its main input: where that is not `kept`, it holds one and the same value."""
    if tensor is None or tensor.dim() < 2 or tensor.shape[1] != kept.shape[1]:
        return False
    rows = rows_of(tensor)[: len(kept)]
    left_out = rows[~kept[: len(rows)]]
    return bool(len(left_out) and len(set(kept.sum(axis=1).tolist())) > 1 and (left_out == left_out.flat[0]).all())


def _are_signals(channels: int, samples: int) -> bool:
    return channels <= MOST_CHANNELS and samples >= LEAST_SAMPLES


def _ends_in_silence(rows) -> bool:
    """Whether (rows, channels, samples) end, or begin, in samples without a value, and no first or last channel is without one."""
    channels, samples = rows.any(axis=2), rows.any(axis=1)
    return bool(channels[:, [0, -1]].all() and not samples[:, [0, -1]].all())


def _are_texts(rows) -> bool:
    """Whether `rows` (samples, parts, ids) are lines or sentences of texts: ids first, zeros behind them; boards and images are not so."""
    used = rows != 0
    again = (used[..., 1:] & ~used[..., :-1]).any(axis=2)
    written = used.any(axis=2).sum()
    return bool(used.shape[2] >= MIN_WIDTH and written and again.sum() <= ELSEWHERE * written)


def main_input(named: list):
    """The tensor that a network reads first: token ids by name, else the first one that is no target."""
    inputs = [(name, tensor) for name, tensor in named if not _says_target(name)]
    for name, tensor in inputs:
        if name in ("input_ids", "tokens", "ids", "src", "input_values", "input_features"):
            return tensor
    return next((tensor for name, tensor in inputs if not _says_mask(name)), None)


def _says_mask(name: str) -> bool:
    return "mask" in name and not any(word in name for word in ("special", "mlm", "loss", "label", "masked", "position", "causal"))


def _says_target(name: str) -> bool:
    return any(word in name for word in ("label", "target", "index", "idx", "position", "token_type"))


def rows_of(tensor):
    """The first rows of a tensor on the host, as an array; not all of a large one."""
    tensor = tensor.detach()
    per_row = tensor.numel() // tensor.shape[0]
    return memory_of(tensor[: max(2, MOST_ELEMENTS // max(1, per_row))])
