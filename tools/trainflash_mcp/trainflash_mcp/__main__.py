"""Start the server."""

import sys

from trainflash_mcp import main

if __name__ == "__main__":
    sys.exit(main())
