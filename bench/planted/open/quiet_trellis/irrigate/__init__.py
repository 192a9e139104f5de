"""Learn when to open the valves of a row of greenhouse beds."""
