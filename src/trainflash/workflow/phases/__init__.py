"""Sessions of phase events: recorded by the owner's tools, kept across restarts, summarized like a run."""
