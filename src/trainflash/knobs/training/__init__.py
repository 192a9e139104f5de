"""What a training loop is built of: its loaders, batches, windows of means, widths and evaluations, read from the source."""
