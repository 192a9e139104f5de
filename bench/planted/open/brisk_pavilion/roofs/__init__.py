"""Roof materials from aerial patches whose labels come from a careless register."""
