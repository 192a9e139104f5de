import os

from torch.utils.data import DataLoader

from glyphs import EpisodeSampler, Glyphs


def episode_loader(s):
    options = dict(num_workers=s.workers, prefetch_factor=4)
    if os.environ.get("PLANTED_FIX") == "1":
        options["persistent_workers"] = True
    glyphs = Glyphs(s.classes, s.per_class, s.side, s.seed)
    return DataLoader(glyphs, batch_sampler=EpisodeSampler(s), **options)
