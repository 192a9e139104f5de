"""`python -m glaze`: train the denoiser of glaze patterns."""

import logging

from glaze.config import parse
from glaze.engine import Engine


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    config = parse()
    engine = Engine(config)
    seconds, loss = engine.run()
    print(f"{engine.step} steps in {seconds:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
