"""From the columns of a trace to `profile_summary.v1`. Each file answers one question; `build` puts the answers together."""
