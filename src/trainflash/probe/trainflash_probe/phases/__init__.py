"""What happens when: hooks on the training, the one loop that they tell, and the phase that each moment belongs to."""
