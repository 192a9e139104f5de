"""`python -m trainflash` is the command line."""

import sys

from trainflash.cli import main

if __name__ == "__main__":
    sys.exit(main())
