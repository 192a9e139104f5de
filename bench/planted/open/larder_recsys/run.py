"""Will the shopper take the substitute? A three-table ranker trained on a stream of offers."""

import argparse

from larder.fit import fit

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=0.03)
    parser.add_argument("--batch", type=int, default=384)
    parser.add_argument("--quiet", action="store_true")
    fit(parser.parse_args())
