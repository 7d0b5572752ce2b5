"""CUDA's libraries: not there. The switches that programs set, of ``matmul`` among them, are kept and have no effect."""
from gradus.backends._switch import KeptFlags, Switch


class _MatmulSwitches:
    def __init__(self):
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True


matmul = _MatmulSwitches()


def is_built():
    """False."""
    return False


_flash, _math, _mem_efficient, _cudnn, _reduced = Switch(), Switch(), Switch(), Switch(), Switch(False)
flash_sdp_enabled, enable_flash_sdp = _flash.get, _flash.set
math_sdp_enabled, enable_math_sdp = _math.get, _math.set
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _mem_efficient.get, _mem_efficient.set
cudnn_sdp_enabled, enable_cudnn_sdp = _cudnn.get, _cudnn.set
fp16_bf16_reduction_math_sdp_allowed, allow_fp16_bf16_reduction_math_sdp = _reduced.get, _reduced.set


class sdp_kernel(KeptFlags):
    """A with block that changes nothing: there is one kernel of attention."""


def is_flash_attention_available():
    """False."""
    return False


def preferred_linalg_library(backend=None):
    """Returns the name that was given, or "default"."""
    return "default" if backend is None else backend


preferred_blas_library = preferred_linalg_library
