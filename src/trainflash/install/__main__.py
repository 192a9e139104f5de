"""`python -m trainflash.install --render DIR`."""

import sys

from trainflash.install.rendering import main

if __name__ == "__main__":
    sys.exit(main())
