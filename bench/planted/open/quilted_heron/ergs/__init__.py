"""Fills the shadows in radar scenes of dune fields."""
