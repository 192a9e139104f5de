"""Pictures for terminals."""


def sparkline(values, width: int = 40) -> str:
    ticks = " .:-=+*#%@"
    values = list(values)[-width:]
    if not values:
        return ""
    low, high = min(values), max(values)
    scale = (len(ticks) - 1) / (high - low) if high > low else 0
    return "".join(ticks[int((v - low) * scale)] for v in values)


def table(rows: dict) -> str:
    wide = max(len(k) for k in rows)
    return "\n".join(f"  {k.ljust(wide)}  {v:.5f}" for k, v in rows.items())
