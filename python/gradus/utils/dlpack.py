"""DLPack under PyTorch's old names: exchange of tensors with other libraries without copying memory."""
from enum import IntEnum

from gradus._C import from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """The device types of DLPack. Tensor.__dlpack_device__ returns a pair of device type and device number."""

    kDLCPU, kDLCUDA, kDLCUDAHost, kDLOpenCL = 1, 2, 3, 4
    kDLVulkan, kDLMetal, kDLVPI, kDLROCM, kDLROCMHost, kDLExtDev, kDLCUDAManaged, kDLOneAPI, kDLWebGPU, kDLHexagon, kDLMAIA = range(7, 18)
