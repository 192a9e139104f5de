"""The network and its update: compiled, run again, evaluated, stepped."""
