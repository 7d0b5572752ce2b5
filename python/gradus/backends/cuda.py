"""CUDA's libraries: not there. ``matmul`` and the switches of attention keep what programs set; they have no effect."""
import contextlib
import warnings


class _MatmulSwitches:
    def __init__(self):
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True


matmul = _MatmulSwitches()


def is_built():
    """False."""
    return False


# Which implementations scaled_dot_product_attention may take (gradus.nn.attention.sdpa_kernel).
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "reduction": False}


def flash_sdp_enabled():
    """The switch of enable_flash_sdp."""
    return _sdp["flash"]


def enable_flash_sdp(enabled):
    """Keeps the switch; it has no effect."""
    _sdp["flash"] = bool(enabled)


def mem_efficient_sdp_enabled():
    """The switch of enable_mem_efficient_sdp."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled):
    """Keeps the switch; it has no effect."""
    _sdp["mem_efficient"] = bool(enabled)


def math_sdp_enabled():
    """The switch of enable_math_sdp."""
    return _sdp["math"]


def enable_math_sdp(enabled):
    """Keeps the switch; it has no effect."""
    _sdp["math"] = bool(enabled)


def cudnn_sdp_enabled():
    """The switch of enable_cudnn_sdp."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled):
    """Keeps the switch; it has no effect."""
    _sdp["cudnn"] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed():
    """The switch of allow_fp16_bf16_reduction_math_sdp."""
    return _sdp["reduction"]


def allow_fp16_bf16_reduction_math_sdp(enabled):
    """Keeps the switch; it has no effect: half types are computed in float32."""
    _sdp["reduction"] = bool(enabled)


def is_flash_attention_available():
    """False: it is a library for CUDA."""
    return False


@contextlib.contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Sets the switches inside a ``with`` block; FutureWarning: gradus.nn.attention.sdpa_kernel is its name now."""
    warnings.warn("`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please see "
                  "`torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.", FutureWarning, stacklevel=3)
    before = dict(_sdp)
    _sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        _sdp.update(before)
