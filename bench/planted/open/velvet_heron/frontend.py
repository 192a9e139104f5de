import numpy as np


def _hz_to_mel(f):
    return 2595.0 * np.log10(1.0 + f / 700.0)


def _mel_to_hz(m):
    return 700.0 * (10.0 ** (m / 2595.0) - 1.0)


class LogMel:
    """Waveform -> (mels, frames) log-mel in dB, mean/var normalised per band."""

    def __init__(self, sample_rate, n_fft, hop, mels, top_db, rasta):
        self.sr, self.n_fft, self.hop, self.mels = sample_rate, n_fft, hop, mels
        self.top_db, self.rasta = top_db, rasta
        self.window = np.hanning(n_fft).astype(np.float32)
        self.bank = self._filters()

    def _filters(self):
        pts = _mel_to_hz(np.linspace(_hz_to_mel(50.0), _hz_to_mel(self.sr / 2), self.mels + 2))
        freqs = np.fft.rfftfreq(self.n_fft, 1.0 / self.sr)
        lo, mid, hi = pts[:-2, None], pts[1:-1, None], pts[2:, None]
        up = (freqs - lo) / (mid - lo)
        down = (hi - freqs) / (hi - mid)
        return np.maximum(0, np.minimum(up, down)).astype(np.float32)

    def __call__(self, wave):
        wave = np.append(wave[:1], wave[1:] - 0.97 * wave[:-1])
        frames = np.lib.stride_tricks.sliding_window_view(wave, self.n_fft)[:: self.hop]
        power = np.abs(np.fft.rfft(frames * self.window, axis=1)) ** 2
        mel = self.bank @ power.T
        db = 10.0 * np.log10(np.maximum(mel, 1e-10))
        db = np.maximum(db, db.max() - self.top_db)
        if self.rasta:
            slow = np.empty_like(db)
            acc = db[:, 0]
            for i in range(db.shape[1]):
                acc = 0.95 * acc + 0.05 * db[:, i]
                slow[:, i] = acc
            db = db - slow
        db = (db - db.mean(1, keepdims=True)) / (db.std(1, keepdims=True) + 1e-5)
        return db.astype(np.float32)
