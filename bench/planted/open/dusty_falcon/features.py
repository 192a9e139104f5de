import numpy as np
import torch
import torch.nn as nn


def hz_to_mel(f):
    return 2595.0 * np.log10(1.0 + f / 700.0)


def mel_to_hz(m):
    return 700.0 * (10.0 ** (m / 2595.0) - 1.0)


def mel_filterbank(sample_rate, n_fft, n_mels, f_min, f_max):
    freqs = np.linspace(0, sample_rate / 2, n_fft // 2 + 1)
    edges = mel_to_hz(np.linspace(hz_to_mel(f_min), hz_to_mel(f_max), n_mels + 2))
    bank = np.zeros((n_mels, len(freqs)), dtype=np.float32)
    for m in range(n_mels):
        left, centre, right = edges[m], edges[m + 1], edges[m + 2]
        for k, f in enumerate(freqs):
            if left < f <= centre:
                bank[m, k] = (f - left) / (centre - left)
            elif centre < f < right:
                bank[m, k] = (right - f) / (right - centre)
    return torch.from_numpy(bank)


class LogMel(nn.Module):
    def __init__(self, sample_rate, n_fft, hop, n_mels, f_min, f_max):
        super().__init__()
        self.n_fft = n_fft
        self.hop = hop
        self.register_buffer("window", torch.hann_window(n_fft))
        bank = mel_filterbank(sample_rate, n_fft, n_mels, f_min, f_max)
        self.register_buffer("bank", bank)

    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        power = spec.abs().pow(2)
        mel = torch.matmul(self.bank, power)
        return torch.log(mel + 1e-4).unsqueeze(1)
