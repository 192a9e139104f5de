"""What the owner's program says: its names, values, uses and effects, read from the source and never run."""
