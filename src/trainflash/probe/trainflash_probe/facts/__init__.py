"""What a diagnosis wants to know beside the phases. Nothing of this is loaded in timed runs."""
