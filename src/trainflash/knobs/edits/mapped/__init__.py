"""Work on one row of a tensor after another: `torch.vmap` of it, which does all rows at once."""
