"""Firn layers from airborne ice radar."""
