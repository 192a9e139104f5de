"""What the owner's program says: its names, calls and uses, and where its values come from; read from the source and never run."""
