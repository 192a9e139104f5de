"""Denoising of density logs from varved lake sediment."""
