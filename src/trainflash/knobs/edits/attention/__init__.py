"""Attention: written out by hand as the fused kernel, and modules that are asked for weights which nobody reads."""
