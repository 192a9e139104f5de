"""Which bell rings next, and how late? A model of change ringing."""
