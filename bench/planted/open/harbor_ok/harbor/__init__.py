"""Berth occupancy from harbour cameras."""
