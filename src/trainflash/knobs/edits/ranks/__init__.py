"""Work of several ranks: what they exchange, when, and which rows each takes."""
