"""Number formats and layouts of tensors."""
