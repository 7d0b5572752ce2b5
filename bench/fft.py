"""Compares the times of Fourier transforms with PyTorch. The transforms are of vectors, batches of vectors and images. The lengths are powers of 2,
composite or prime."""
from beside import compare

LINES = [(16,), (100,), (256,), (1024,), (4096,), (65536,), (100000,), (1 << 20,), (101,), (1009,), (10007,), (100003,)]
BATCHES = [(1000, 16), (1000, 100), (256, 256), (512, 512), (64, 1024), (100, 101), (8, 16384)]
COLUMNS = [(256, 256), (1024, 64), (4096, 64)]
IMAGES = [((64, 64), 2), ((512, 512), 2), ((32, 32, 32), 3), ((16, 3, 224, 224), 2)]


def cases(torch, layout):
    found = {}
    for dtype in ("float32", "float64"):
        for shapes, dims in ((LINES + BATCHES, [-1]), (COLUMNS, [0]), *(([shape], list(range(-n, 0))) for shape, n in IMAGES)):
            for shape in shapes:
                x = torch.rand(*shape, dtype=getattr(torch, dtype))
                y, half = torch.complex(x, x.flip(0)), torch.fft.rfftn(x, dim=dims).contiguous()
                name, s = f"{dtype} {shape} {dims}", [shape[d] for d in dims]
                found[f"fft {name}"] = lambda y=y, dims=dims: torch.fft.fftn(y, dim=dims)
                found[f"rfft {name}"] = lambda x=x, dims=dims: torch.fft.rfftn(x, dim=dims)
                found[f"irfft {name}"] = lambda half=half, dims=dims, s=s: torch.fft.irfftn(half, s, dims)
    sound, window = torch.rand(4, 160000), torch.hann_window(400)
    spectrum = torch.stft(sound, 400, 160, window=window, return_complex=True)
    found["stft"] = lambda: torch.stft(sound, 400, 160, window=window, return_complex=True)
    found["istft"] = lambda: torch.istft(spectrum, 400, 160, window=window)
    return found


if __name__ == "__main__":
    compare(cases, __doc__)
