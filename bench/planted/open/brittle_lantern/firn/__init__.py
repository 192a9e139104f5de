"""Restores broken stretches of ice cores from what lies above and below them."""
