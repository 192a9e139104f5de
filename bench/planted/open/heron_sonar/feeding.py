from functools import partial

from torch.utils.data import DataLoader

from pings import prepare_worker


def _worker_init(worker_id: int, filters: int, length: int):
    prepare_worker(filters, length)


def make_loader(dataset, sampler, conf, keep: bool):
    return DataLoader(
        dataset,
        batch_size=conf.batch_size,
        sampler=sampler,
        num_workers=conf.workers,
        drop_last=True,
        prefetch_factor=4,
        persistent_workers=keep,
        worker_init_fn=partial(_worker_init, filters=conf.bank_filters, length=conf.ping_length),
    )


def rounds(dataset, sampler, conf):
    """Yields (epoch, loader); the curriculum moves on between epochs."""
    loader = None
    for epoch in range(conf.epochs):
        sampler.set_epoch(epoch)
        if loader is None or not conf.keep_loader:
            loader = make_loader(dataset, sampler, conf, conf.keep_loader)
        yield epoch, loader
        sampler.harden(1.02)
