"""How fast a training is: a program as it is, or a step function; alone or on several ranks."""
