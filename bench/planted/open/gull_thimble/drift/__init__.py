"""Forecasts of drifting sea buoys, trained from the station's archive."""
