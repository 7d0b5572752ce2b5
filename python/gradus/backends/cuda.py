"""CUDA's libraries: not there. ``matmul`` keeps the switches that programs set; they have no effect."""


class _MatmulSwitches:
    def __init__(self):
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True


matmul = _MatmulSwitches()


def is_built():
    """False."""
    return False
