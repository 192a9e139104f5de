"""What the owner's code does to values that are held: who changes, shares, keeps or guards them, read from the source; in doubt it does."""
