"""What-if replay: a run that alternates live steps with steps without one cost."""
