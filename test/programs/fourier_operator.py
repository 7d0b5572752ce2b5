"""Trains a Fourier neural operator (Li et al., 2021) for the heat equation, and computes spectra of sounds and reconstructs phases with the method of
Griffin and Lim (1984)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SpectralConv1d(nn.Module):
    def __init__(self, channels, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(channels, channels, modes, dtype=torch.cfloat) / channels)

    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        out = torch.zeros_like(spectrum)
        out[:, :, : self.modes] = torch.einsum("bim,iom->bom", spectrum[:, :, : self.modes], self.weight)
        return torch.fft.irfft(out, n=x.size(-1))


class Operator(nn.Module):
    def __init__(self, width=16, modes=6, depth=2):
        super().__init__()
        self.lift = nn.Conv1d(2, width, 1)
        self.spectral = nn.ModuleList(SpectralConv1d(width, modes) for _ in range(depth))
        self.local = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(depth))
        self.project = nn.Conv1d(width, 1, 1)

    def forward(self, x):
        grid = torch.linspace(0, 1, x.size(-1)).expand(x.size(0), 1, -1)
        h = self.lift(torch.cat([x, grid], 1))
        for spectral, local in zip(self.spectral, self.local):
            h = F.gelu(spectral(h) + local(h))
        return self.project(h)


def heat(u, time):
    frequency = 2 * math.pi * torch.fft.rfftfreq(u.size(-1), d=1 / u.size(-1))
    return torch.fft.irfft(torch.fft.rfft(u) * torch.exp(-time * frequency**2), n=u.size(-1))


def rough(batch, n):
    coefficients = torch.randn(batch, 1, 8)
    x = torch.linspace(0, 1, n + 1)[:-1]
    return sum(coefficients[..., k : k + 1] * torch.sin(2 * math.pi * (k + 1) * x + k) / (k + 1) for k in range(8))


def mel_filters(n_freqs, n_mels, rate):
    hz = torch.linspace(0, rate / 2, n_freqs)
    mels = torch.linspace(0, 2595 * math.log10(1 + rate / 2 / 700), n_mels + 2)
    centres = 700 * (10 ** (mels / 2595) - 1)
    slopes = centres.unsqueeze(0) - hz.unsqueeze(1)
    width = centres[1:] - centres[:-1]
    return torch.minimum(-slopes[:, :-2] / width[:-1], slopes[:, 2:] / width[1:]).clamp(min=0)


def griffin_lim(magnitude, window, n_fft, hop, length, steps):
    angles = torch.exp(2j * math.pi * torch.rand(magnitude.shape))
    for _ in range(steps):
        sound = torch.istft(magnitude * angles, n_fft, hop, window=window, length=length)
        rebuilt = torch.stft(sound, n_fft, hop, window=window, return_complex=True)
        angles = rebuilt / rebuilt.abs().clamp_min(1e-8)
    return torch.istft(magnitude * angles, n_fft, hop, window=window, length=length)


def main():
    torch.manual_seed(0)
    model = Operator()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(20):
        u = rough(8, 60)
        loss = F.mse_loss(model(u), heat(u, 1e-3))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            print(f"operator {step}: {loss.item():.4f}")
    with torch.no_grad():
        u = rough(2, 90)  # a higher resolution than in training
        print(f"finer: {F.mse_loss(model(u), heat(u, 1e-3)).item():.4f}")

    rate, n_fft, hop = 8000, 256, 64
    t = torch.arange(4000) / rate
    sound = torch.sin(2 * math.pi * (300 * t + 400 * t**2)) + 0.3 * torch.sin(2 * math.pi * 1250 * t) + 0.01 * torch.randn(4000)
    window = torch.signal.windows.hann(n_fft, sym=False)
    spectrum = torch.stft(sound, n_fft, hop, window=window, return_complex=True)
    magnitude = spectrum.abs()
    print(spectrum.shape, [round(v, 3) for v in magnitude.mean(1)[8:14].tolist()], magnitude.argmax(0)[:8].tolist())
    mel = torch.log(mel_filters(n_fft // 2 + 1, 12, rate).mT @ magnitude.square() + 1e-6)
    print([round(v, 3) for v in mel.mean(1).tolist()])
    print(f"back: {(torch.istft(spectrum, n_fft, hop, window=window, length=4000) - sound).abs().max().item():.3f}")
    again = griffin_lim(magnitude, window, n_fft, hop, 4000, 6)
    print(f"griffin-lim: {F.mse_loss(torch.stft(again, n_fft, hop, window=window, return_complex=True).abs(), magnitude).item():.3f}")

    # A filter is learned through the short-time Fourier transform.
    gain = torch.zeros(n_fft // 2 + 1, 1, requires_grad=True)
    target = torch.sin(2 * math.pi * 1250 * t)
    optimizer = torch.optim.Adam([gain], lr=0.3)
    for step in range(10):
        filtered = torch.istft(spectrum * torch.sigmoid(gain), n_fft, hop, window=window, length=4000)
        loss = F.mse_loss(filtered, 0.3 * target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == 0:
            print(f"filter {step}: {loss.item():.4f}")
    image = torch.rand(3, 30, 42)
    blurred = torch.fft.irfft2(torch.fft.rfft2(image) * torch.fft.rfft2(torch.ones(3, 3) / 9, s=(30, 42)), s=(30, 42))
    expected = F.conv2d(F.pad(image.unsqueeze(0), (2, 0, 2, 0), mode="circular"), torch.ones(3, 1, 3, 3) / 9, groups=3).squeeze(0)
    print(f"convolution theorem: {(blurred - expected).abs().max().item():.3f}", [round(v, 3) for v in torch.fft.fftshift(torch.fft.fftfreq(5)).tolist()])


if __name__ == "__main__":
    main()
