"""How many sequences fit into the room for activations."""

from settings import Settings

BYTES = 4


def bytes_each(settings: Settings) -> int:
    """Activations that one sequence leaves for the way back."""
    network, length = settings.network, settings.sequences.length
    floats = length * (4 + network.motifs * 2)
    floats += network.depth * length * network.width * 2 * 5
    return floats * BYTES


def largest_batch(settings: Settings) -> int:
    """The largest divisor of the effective batch that fits."""
    room = settings.memory.budget_mb * 2**20 * settings.memory.safety
    fitting = max(int(room // bytes_each(settings)), 1)
    whole = settings.schedule.effective_batch
    return max(size for size in range(1, whole + 1) if whole % size == 0 and size <= fitting)


def plan(settings: Settings) -> tuple[int, int]:
    """Sequences for each pass, and passes for each update."""
    size = largest_batch(settings)
    return size, settings.schedule.effective_batch // size
