import os

from torch.utils.data import DataLoader

from survey import Calls, Shuffle


class Feed:
    """Batches of one night after the other; `for x, y in feed.night(3)`."""

    def __init__(self, path, count, take, batch, workers, seed):
        self.calls = Calls(path, count)
        self.order = Shuffle(count, take, seed)
        self.options = {"batch_size": batch, "num_workers": workers, "drop_last": True, "sampler": self.order, "prefetch_factor": 4}
        if os.environ.get("PLANTED_FIX") == "1":
            loader = DataLoader(self.calls, persistent_workers=True, **self.options)
            self.source = lambda: loader
        else:
            self.source = lambda: DataLoader(self.calls, **self.options)

    def night(self, number):
        self.order.night = number
        yield from self.source()
