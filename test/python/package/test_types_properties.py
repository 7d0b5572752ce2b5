"""Compares properties of Tensor with PyTorch."""
import pytest
from beside_torch import check

PROPERTIES = """
zeros(2,3).T.shape
zeros(2).T
zeros(2,3,4).T.shape
zeros(()).T
zeros(2,3,4).mT.shape
zeros(2).mT
zeros(()).mT
zeros(2,3).H.shape
zeros(2).H
zeros(2,3,4).H
zeros(()).H
zeros(2,3,dtype=torch.complex64).mH.shape
zeros(2).mH
zeros(2,3).real.shape
zeros(2,3).imag
x=zeros(2); x.real is x
x=zeros(2); x.real=3; x
x=zeros(2); x.imag=3; x
x=zeros(2,dtype=torch.complex64); x.imag=3; x.real=torch.tensor([1.,2]); x
x=zeros(2); x.shape=3
x=zeros(2); del x.shape
x=zeros(2); x.dtype=3
x=zeros(2); x.requires_grad='a'
x=zeros(2); x.requires_grad=1
x=zeros(2); del x.requires_grad
x=zeros(2,dtype=torch.int8); x.requires_grad=True
x=zeros(2,dtype=torch.int8); x.requires_grad=False; x.requires_grad
x=zeros(2,requires_grad=True)*2; x.requires_grad=False
x=zeros(2,requires_grad=True)*2; x.requires_grad=True; 1
x=zeros(2); x.grad=3
x=zeros(2); x.grad=zeros(3)
x=zeros(2); x.grad=zeros(2,dtype=torch.float64)
x=zeros(2); x.grad=zeros(2,device='meta')
x=zeros(2); x.grad=x
x=zeros(2); x.grad=zeros(2); x.grad
x=zeros(2); x.grad=None; x.grad
x=zeros(2); x.grad=zeros(2); del x.grad; x.grad
x=zeros(2,requires_grad=True); y=x*2; y.grad
x=zeros(2,requires_grad=True); y=x*2; y.grad=zeros(2); y.grad
x=zeros(2); x.grad_fn
x=zeros(2); x.grad_fn=3
x=zeros(2,requires_grad=True); x.grad_fn=3
x=zeros(2,requires_grad=True); x.data.requires_grad, x.data._version, x.data is x.data, x.data.data_ptr()==x.data_ptr()
x=zeros(2,requires_grad=True); x.data.add_(1); x._version, x
x=zeros(2,requires_grad=True); x.data=ones(3); x, x._version
x=zeros(2,requires_grad=True); x.data=ones(3,dtype=torch.float64); x.dtype
x=zeros(2,requires_grad=True); x.data=ones(3,dtype=torch.int64); x.dtype
x=zeros(2); x.data=3
x=zeros(2); del x.data
x=zeros(2); x.data=zeros(2,device='meta')
x=zeros(2); y=x[0:1]; x.data=ones(4); y,x,y._base is x
x=zeros(2,requires_grad=True); y=(x*2); y.data=ones(4); y
x=zeros(2,requires_grad=True); x.grad=zeros(2); x.data=ones(4); x.grad
x=zeros(2,requires_grad=True); x.grad=zeros(2); x.grad.data=ones(4); x.grad
x=zeros(2,requires_grad=True); x.data=x; x
x=zeros(2,requires_grad=True); y=x*x; x.data=ones(2); y.sum().backward(); x.grad
x=zeros(2); a=ones(2); x.data=a; x.add_(1); a, a._version, x._version
x=zeros(2); x.add_(1); x.add_(1); x.data=ones(2); x._version
zeros(2).is_cpu
zeros(2).is_cuda
zeros(2).is_meta
zeros(2).is_sparse
zeros(2).is_sparse_csr
zeros(2).is_quantized
zeros(2).is_mkldnn
zeros(2).is_mps
zeros(2).is_xla
zeros(2).is_ipu
zeros(2).is_maia
zeros(2).is_mtia
zeros(2).is_vulkan
zeros(2).is_xpu
zeros(2).is_nested
zeros(2).name
zeros(2).output_nr
zeros(2)._version
zeros(2)._base
zeros(2)[0]._base
zeros(2).retains_grad
zeros(2)._is_view()
zeros(2)[0]._is_view()
zeros(2).is_leaf
zeros(2).layout
zeros(2).ndim
zeros(2).itemsize
x=zeros(2,3,requires_grad=True)*2; x.unbind(0)[1].output_nr
x=zeros(2,requires_grad=True)*2; x.retain_grad(); x.retains_grad
x=zeros(2,requires_grad=True); x.retain_grad(); x.retains_grad
repr(zeros(2,requires_grad=True)*2)
str(zeros(2))
"""


@pytest.mark.parametrize("expression", (PROPERTIES).strip().split("\n"))
def test_properties_agree_with_pytorch(expression):
    check(expression)
