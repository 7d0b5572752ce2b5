"""Switches of CUDA's libraries, e.g. matmul.allow_tf32. CUDA is not supported, so the switches only store their values."""
from gradus.backends._switch import KeptFlags, Switch


class _MatmulSwitches:
    def __init__(self):
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True


matmul = _MatmulSwitches()


def is_built():
    """Returns False, because CUDA is not supported."""
    return False


_flash, _math, _mem_efficient, _cudnn, _reduced = Switch(), Switch(), Switch(), Switch(), Switch(False)
flash_sdp_enabled, enable_flash_sdp = _flash.get, _flash.set
math_sdp_enabled, enable_math_sdp = _math.get, _math.set
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _mem_efficient.get, _mem_efficient.set
cudnn_sdp_enabled, enable_cudnn_sdp = _cudnn.get, _cudnn.set
fp16_bf16_reduction_math_sdp_allowed, allow_fp16_bf16_reduction_math_sdp = _reduced.get, _reduced.set


class sdp_kernel(KeptFlags):
    """Context manager without effect, because there is only one attention kernel."""


def is_flash_attention_available():
    """Returns False, because CUDA is not supported."""
    return False


def preferred_linalg_library(backend=None):
    """Returns `backend`, or "default" if it is None. The choice has no effect."""
    return "default" if backend is None else backend


preferred_blas_library = preferred_linalg_library
