"""Which cicada species sing in a recording."""
