"""How rows become batches: a whole batch by one index, what joins samples, micro-batches of another size."""
