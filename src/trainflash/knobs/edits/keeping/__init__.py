"""Work that is done again though nothing changed: its result, its file, its connection, its workers are kept."""
