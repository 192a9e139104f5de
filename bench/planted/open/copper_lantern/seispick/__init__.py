"""Picking of P arrivals on three-component records."""
