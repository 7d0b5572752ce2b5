"""DLPack under PyTorch's old names: tensors that share memory with those of other libraries."""
from enum import IntEnum

from gradus._C import from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """DLPack's numbers of devices, the first of the pair that ``Tensor.__dlpack_device__`` gives."""

    kDLCPU, kDLCUDA, kDLCUDAHost, kDLOpenCL = 1, 2, 3, 4
    kDLVulkan, kDLMetal, kDLVPI, kDLROCM, kDLROCMHost, kDLExtDev, kDLCUDAManaged, kDLOneAPI, kDLWebGPU, kDLHexagon, kDLMAIA = range(7, 18)
