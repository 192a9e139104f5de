"""A neural operator that forecasts made-up vorticity fields on a sphere."""
