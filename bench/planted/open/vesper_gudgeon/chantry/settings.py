import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    bins: int = 480  # five to a semitone, eight octaves
    voices: int = 4
    width: int = 448
    depth: int = 3
    pieces: int = 110
    rehearsal: int = 5  # batches sung from one piece before the next is opened
    frames: int = 192
    rate: float = 4e-4
    backend: str = "aot_eager"  # no compiler in the vestry
    graphs: int = 128
    steps: int = int(os.environ.get("PLANTED_STEPS", 250))
    seed: int = 31
