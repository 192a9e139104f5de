"""Mark doses, reagents and instruments in lab notes."""
