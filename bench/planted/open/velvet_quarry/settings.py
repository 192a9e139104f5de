"""Settings: a dataclass for each part, filled from `part.name=value` on the command line."""

from dataclasses import dataclass, field, fields


@dataclass
class Pings:
    length: int = 96
    kinds: int = 40
    noise: float = 0.15


@dataclass
class Codec:
    width: int = 192
    depth: int = 4
    code: int = 32
    books: int = 2
    entries: int = 192


@dataclass
class Fit:
    steps: int = 250
    batch: int = 320
    rate: float = 1e-3
    rise: int = 10  # steps between two levels of sharpness
    report: int = 20
    seed: int = 4
    backend: str = "aot_eager"  # the ship's boxes have no C++ compiler
    variants: int = 128


@dataclass
class Settings:
    pings: Pings = field(default_factory=Pings)
    codec: Codec = field(default_factory=Codec)
    fit: Fit = field(default_factory=Fit)


def read(words: list[str]) -> Settings:
    settings = Settings()
    for word in words:
        path, value = word.split("=", 1)
        part, name = path.split(".")
        target = getattr(settings, part)
        kind = {f.name: type(getattr(target, f.name)) for f in fields(target)}[name]
        setattr(target, name, kind(value))
    return settings
