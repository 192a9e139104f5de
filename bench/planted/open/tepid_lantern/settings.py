from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """One firing campaign of the wood kiln in the yard."""

    seed: int = 31
    firings: int = 48
    minutes: int = 900
    past: int = 64
    ahead: int = 15
    batch: int = 32
    width: int = 24
    depth: int = 4
    lr: float = 2e-3
    sheet: str = "sheet.json"
    keep_rows: int = 400
    hold: int = 80
    say_every: int = 100
