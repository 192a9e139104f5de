"""On what it was measured: accelerators, driver, versions, limits, commit."""
