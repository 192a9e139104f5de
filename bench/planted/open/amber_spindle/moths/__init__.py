"""Sort museum scans of moth wings by species."""
