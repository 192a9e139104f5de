"""Landmarks on the ear stones of cod, from the outline harmonics alone."""
