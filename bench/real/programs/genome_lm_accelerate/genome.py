import numpy as np
import torch

VOCAB = 4  # A, C, G, T


def read_fasta(path):
    contigs, lines = {}, []
    with open(path) as f:
        for line in f:
            if line.startswith(">"):
                lines = contigs.setdefault(line[1:].strip(), [])
            else:
                lines.append(line.strip())
    return {name: "".join(parts) for name, parts in contigs.items()}


def windows(sequence, length, stride):
    """Token windows as one uint8 tensor (n, length)."""
    table = np.zeros(256, dtype=np.uint8)
    for i, base in enumerate(b"ACGT"):
        table[base] = i
    tokens = table[np.frombuffer(sequence.encode(), dtype=np.uint8)]
    view = np.lib.stride_tricks.sliding_window_view(tokens, length)[::stride]
    return torch.from_numpy(view.copy())
