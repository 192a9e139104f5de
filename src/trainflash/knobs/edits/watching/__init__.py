"""What watches a training and was left on: modes, profilers, counters, logs."""
