"""Writes a made-up genome: genome.fa, a few contigs with promoters, genes and repeats."""
import numpy as np

BASES = np.array(list("ACGT"))
COMPLEMENT = str.maketrans("ACGT", "TGCA")
CODONS = ["ATG", "GCT", "GAA", "AAA", "CTG", "GGT", "TTC", "GAT", "CCG", "ACC", "GTT", "CAG", "AGC", "TAC"]
REPEAT = "GGCCGGGCGCGGTGGCTCACGCCTGTAATCCCAGCACTTTGGGAGGC"


def noisy(rng, text, rate=0.06):
    letters = np.array(list(text))
    hit = rng.random(len(letters)) < rate
    letters[hit] = rng.choice(BASES, hit.sum())
    return "".join(letters)


def contig(rng, length):
    out, n = [], 0
    while n < length:
        kind = rng.random()
        if kind < 0.35:
            gc = rng.uniform(0.3, 0.6)
            part = "".join(rng.choice(BASES, int(rng.integers(40, 200)), p=[(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]))
        elif kind < 0.6:
            spacer = "".join(rng.choice(BASES, int(rng.integers(16, 19))))
            part = noisy(rng, "TTGACA") + spacer + noisy(rng, "TATAAT") + "".join(rng.choice(BASES, 7)) + noisy(rng, "AGGAGG")
        elif kind < 0.85:
            part = "ATG" + "".join(rng.choice(CODONS, int(rng.integers(20, 80)))) + "TAA"
        else:
            part = noisy(rng, REPEAT)
        if rng.random() < 0.3:
            part = part.translate(COMPLEMENT)[::-1]
        out.append(part)
        n += len(part)
    return "".join(out)[:length]


def main():
    rng = np.random.default_rng(21)
    with open("genome.fa", "w") as f:
        for i in range(6):
            sequence = contig(rng, 60000)
            f.write(f">contig_{i}\n")
            for start in range(0, len(sequence), 80):
                f.write(sequence[start : start + 80] + "\n")


if __name__ == "__main__":
    main()
