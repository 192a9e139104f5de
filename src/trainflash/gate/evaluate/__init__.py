"""How good the model is on a small fixed evaluation."""
