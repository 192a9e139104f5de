"""What every step does, done now and then, later, or only where it is asked for."""
