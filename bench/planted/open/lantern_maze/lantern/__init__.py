"""Find the lantern in a dark maze: an actor and a critic, many mazes at once."""
