"""What happens to a raw trace before the network sees it."""

import numpy as np
from scipy.ndimage import median_filter


def detrend(trace: np.ndarray) -> np.ndarray:
    x = np.linspace(-1.0, 1.0, trace.shape[1], dtype=np.float32)
    slope = (trace * x).sum(1, keepdims=True) / (x * x).sum()
    return trace - trace.mean(1, keepdims=True) - slope * x


def despike(trace: np.ndarray, window: int, backend: str) -> np.ndarray:
    """Running median; edges repeat the last sample."""
    if backend == "scipy":
        return median_filter(trace, size=(1, window), mode="nearest")
    half = window // 2
    cleaned = np.empty_like(trace)
    for component in range(trace.shape[0]):
        padded = np.pad(trace[component], half, mode="edge").tolist()
        for i in range(trace.shape[1]):
            cleaned[component, i] = sorted(padded[i : i + window])[half]
    return cleaned


def whiten(trace: np.ndarray, floor: float = 0.05) -> np.ndarray:
    """Flattens the spectrum, as cross-correlation people do."""
    spectrum = np.fft.rfft(trace, axis=1)
    power = np.abs(spectrum)
    kernel = np.ones(7) / 7
    smooth = np.stack([np.convolve(row, kernel, mode="same") for row in power])
    return np.fft.irfft(spectrum / (smooth + floor * smooth.max()), n=trace.shape[1], axis=1).astype(np.float32)


def target_curve(length: int, onset: int, width: float = 6.0) -> np.ndarray:
    x = (np.arange(length) - onset) / width
    return np.exp(-0.5 * x * x).astype(np.float32)


def condition(event, gain: float, settings) -> tuple[np.ndarray, np.ndarray]:
    trace = detrend(event.trace * gain)
    trace = despike(trace, settings.despike_window, settings.filter_backend)
    both = np.concatenate([trace, whiten(trace)])
    both /= both.std(axis=1, keepdims=True) + 1e-6
    length = trace.shape[1]
    targets = np.stack([target_curve(length, event.p_onset), target_curve(length, event.s_onset)])
    return both, targets
