"""Values that pass through a class, a merged dictionary or a framework's own block on their way to the loader."""

from __future__ import annotations

import textwrap

import pytest
from knob_scenes import added, finding, loader, program, removed, summary

from trainflash.errors import UsageError

HEAD = "import os\nimport yaml\nimport torch\nimport torch.utils.data\nfrom torch.utils.data import DataLoader\n"
CONFIG = "data:\n  batch_size: 4\n  num_workers: 0\n"


def workers(tmp_path, source, **files):
    """The candidate of dataloader_workers, and its old and new lines, for the program's only loader, which has no workers."""
    made = program(tmp_path, train_py=HEAD + textwrap.dedent(source), **files)
    place = made.line("train.py", "DataLoader(")
    run = summary(loaders=(loader(location=place, num_workers=0),))
    candidate = made.propose("dataloader_workers", run, value="2", findings=[finding("input_cpu")])
    return removed(candidate), added(candidate), made.apply(candidate)


FORMS = {
    "one dictionary over the other": (
        """
        BASE = {"num_workers": 0, "batch_size": 4}
        def build(more):
            return DataLoader(ds, **(BASE | more))
        build({"shuffle": True})
        """,
        'BASE = {"num_workers": 2, "batch_size": 4}',
        {},
    ),
    "a copy of the defaults": (
        """
        DEFAULTS = {"data": {"batch_size": 4, "num_workers": 0}, "model": {"width": 8}}
        def settings():
            return {section: dict(values) for section, values in DEFAULTS.items()}
        cfg = settings()
        train = DataLoader(ds, num_workers=cfg["data"]["num_workers"])
        """,
        'DEFAULTS = {"data": {"batch_size": 4, "num_workers": 2}, "model": {"width": 8}}',
        {},
    ),
    "no more than the cores": (
        """
        WORKERS = 0
        train = DataLoader(ds, num_workers=min(WORKERS, os.cpu_count() // 2))
        """,
        "WORKERS = 2",
        {},
    ),
    "an object with the keys of a file": (
        """
        class Config:
            def __init__(self, given):
                for key, value in given.items():
                    setattr(self, key, Config(value) if isinstance(value, dict) else value)
        cfg = Config(yaml.safe_load(open("conf.yaml")))
        train = DataLoader(ds, cfg.data.batch_size, num_workers=cfg.data.num_workers)
        """,
        "  num_workers: 2",
        {"conf_yaml": CONFIG},
    ),
    "a class that is made of a file": (
        """
        from dataclasses import dataclass
        @dataclass
        class Config:
            num_workers: int = 0
            @classmethod
            def read(cls, path):
                return cls(**yaml.safe_load(open(path)))
        cfg = Config.read("conf.yaml")
        train = DataLoader(ds, num_workers=cfg.num_workers)
        """,
        "num_workers: 2",
        {"conf_yaml": "num_workers: 0\n"},
    ),
    "a field of a field": (
        """
        class Data(Model):
            num_workers: int = 0
        class Settings(Model):
            data: Data = Data()
        settings = Settings()
        train = DataLoader(ds, num_workers=settings.data.num_workers)
        """,
        "    num_workers: int = 2",
        {},
    ),
    "a field made by a factory": (
        """
        from dataclasses import dataclass, field
        @dataclass
        class Data:
            num_workers: int = 0
        @dataclass
        class Settings:
            data: Data = field(default_factory=Data)
        settings = Settings()
        train = DataLoader(ds, num_workers=settings.data.num_workers)
        """,
        "    num_workers: int = 2",
        {},
    ),
    "Lightning's own copy of the arguments": (
        """
        class Data(LightningDataModule):
            def __init__(self, batch_size=4, num_workers=0):
                super().__init__()
                self.save_hyperparameters()
            def train_dataloader(self):
                return DataLoader(self.rows, self.hparams.batch_size, num_workers=self.hparams.num_workers)
        trainer.fit(net, Data(batch_size=8))
        """,
        "    def __init__(self, batch_size=4, num_workers=2):",
        {},
    ),
    "Lightning's own copy of a configuration": (
        """
        class Net(LightningModule):
            def __init__(self, cfg):
                super().__init__()
                self.save_hyperparameters(cfg)
            def train_dataloader(self):
                return DataLoader(self.rows, num_workers=self.hparams.num_workers)
        trainer.fit(Net({"num_workers": 0}))
        """,
        'trainer.fit(Net({"num_workers": 2}))',
        {},
    ),
    "a default of further arguments": (
        """
        def build(rows, **options):
            options.setdefault("num_workers", 0)
            return DataLoader(rows, **options)
        build(ds, batch_size=4)
        """,
        '    options.setdefault("num_workers", 2)',
        {},
    ),
    "a condition of the other options of workers": (
        """
        CFG = {"workers": 0}
        def build(cfg):
            options = dict(num_workers=cfg["workers"])
            if cfg["workers"] > 0:
                options["persistent_workers"] = True
                options.update(prefetch_factor=4)
            return DataLoader(ds, **options)
        build(CFG)
        """,
        'CFG = {"workers": 2}',
        {},
    ),
    "a part of a configuration that is called like a module": (
        """
        import hydra
        @hydra.main(config_path=".", config_name="conf")
        def main(cfg):
            train = DataLoader(ds, **cfg.data)
        """,
        "  num_workers: 2",
        {"conf_yaml": CONFIG},
    ),
    "a block that names the function": (
        """
        from hydra.utils import instantiate
        def make_loader(batch_size, num_workers):
            return DataLoader(ds, batch_size, num_workers=num_workers)
        instantiate(yaml.safe_load(open("conf.yaml"))["data"])
        """,
        "  num_workers: 2",
        {"conf_yaml": "data:\n  _target_: train.make_loader\n  batch_size: 4\n  num_workers: 0\neval:\n  num_workers: 0\n"},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_value_is_changed_where_it_is_typed(tmp_path, form):
    source, line, files = FORMS[form]
    before, after, _ = workers(tmp_path, source, **files)
    assert after == [line] and before == [line.replace("2", "0")]


REFUSED = {
    "the lesser of two settings": (
        "A, B = 0, 4\ntrain = DataLoader(ds, num_workers=min(A, B))\n",
        "is computed",
        {},
    ),
    "a condition that also sets the batch": (
        """
        CFG = {"workers": 0}
        def build(cfg):
            options = dict(num_workers=cfg["workers"])
            if cfg["workers"] > 0:
                options["batch_size"] = 64
            return DataLoader(ds, **options)
        build(CFG)
        """,
        "is also used at",
        {},
    ),
    "a condition with another branch": (
        """
        CFG = {"workers": 0}
        def build(cfg):
            options = dict(num_workers=cfg["workers"])
            if cfg["workers"] > 0:
                options["persistent_workers"] = True
            else:
                options["shuffle"] = True
            return DataLoader(ds, **options)
        build(CFG)
        """,
        "is also used at",
        {},
    ),
    "two blocks that name the function": (
        """
        from hydra.utils import instantiate
        def make_loader(num_workers):
            return DataLoader(ds, num_workers=num_workers)
        cfg = yaml.safe_load(open("conf.yaml"))
        instantiate(cfg["a"]), instantiate(cfg["b"])
        """,
        "may come from several places",
        {"conf_yaml": "a:\n  _target_: train.make_loader\n  num_workers: 0\nb:\n  _target_: train.make_loader\n  num_workers: 0\n"},
    ),
    "a part of a configuration that others get whole": (
        """
        import hydra
        @hydra.main(config_path=".", config_name="conf")
        def main(cfg):
            prepare(**cfg.data)
            train = DataLoader(ds, **cfg.data)
        """,
        "is also used at",
        {"conf_yaml": CONFIG},
    ),
    "arguments that Lightning was told to leave out": (
        """
        class Data(LightningDataModule):
            def __init__(self, num_workers=0):
                self.save_hyperparameters(ignore=["num_workers"])
            def train_dataloader(self):
                return DataLoader(self.rows, num_workers=self.hparams.num_workers)
        """,
        "hparams.num_workers",
        {},
    ),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_also_means_something_else_is_refused(tmp_path, form):
    source, reason, files = REFUSED[form]
    with pytest.raises(UsageError, match=reason):
        workers(tmp_path, source, **files)
