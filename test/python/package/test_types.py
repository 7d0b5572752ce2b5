"""Compares value types with PyTorch: dtypes, devices, layouts, memory formats, Size, finfo, iinfo."""
import pytest
from beside_torch import check

DTYPES = """
torch.dtype()
torch.float32.__reduce__()
torch.layout()
torch.memory_format()
[torch.contiguous_format,torch.preserve_format,torch.channels_last,torch.channels_last_3d]
torch.float32.to_complex()
torch.int32.to_complex()
torch.int32.to_real()
torch.bfloat16.to_complex()
torch.float64.to_complex()
torch.complex128.to_real()
torch.bool.to_complex()
torch.quint8.to_real()
torch.float8_e5m2.to_complex()
torch.quint8.is_signed
torch.qint8.is_signed
torch.bool.is_signed
torch.complex64.is_signed
torch.quint8.is_floating_point
torch.float32.itemsize
torch.bool.is_complex
torch.float32.foo
torch.float32 < torch.float64
copy.deepcopy(torch.float32) is torch.float32
copy.copy(torch.float32) is torch.float32
"""

DEVICES = """
torch.device('cpu').__reduce__()
torch.device('cpu:1').__reduce__()
torch.device('foo')
torch.device('')
torch.device('cpu:')
torch.device('cpu:01')
torch.device('cpu:1:2')
torch.device('cpu:-1')
torch.device('cpu:x')
torch.device('cpu',0)
torch.device('cpu:0',0)
torch.device('cpu',-1)
torch.device('cpu',-2)
torch.device('cpu',None)
torch.device('cpu',1.5)
torch.device(0)
torch.device(-1)
torch.device(1.5)
torch.device()
torch.device(None)
torch.device(torch.device('cpu:1'))
torch.device(torch.device('cpu'), 1)
torch.device(type='cpu')
torch.device(type='cpu',index=2)
torch.device(index=2)
torch.device('cuda')
torch.device('cuda:3').index
torch.device('cuda:3').type
torch.device('cuda:3')==torch.device('cuda',3)
torch.device('cpu')=='cpu'
hash(torch.device('cpu:1'))==hash(torch.device('cpu:1'))
str(torch.device('cpu:1'))
str(torch.device('cuda'))
torch.zeros(2,device='cpu:0').device
torch.zeros(2,device='cpu:3').device
torch.zeros(2,device='cuda')
torch.zeros(2,device=torch.device('cuda:1'))
torch.zeros(2,device='xpu')
torch.zeros(2,device='foo')
torch.zeros(2,device=0)
torch.zeros(2,device='meta:1').device
torch.zeros(2).cuda()
torch.zeros(2).to('cuda')
torch.zeros(2).to(0)
torch.zeros(2).pin_memory()
torch.device('privateuseone')
torch.device('CPU')
torch.device('hip')
torch.device('mkldnn')
copy.deepcopy(torch.device('cpu'))
"""

SIZES = """
torch.Size()
torch.Size([])
torch.Size((2,3))
torch.Size([2.5])
torch.Size(['a'])
torch.Size(5)
torch.Size([True])
torch.Size([np.int64(3)])
torch.Size([torch.tensor(3)])
torch.Size([torch.tensor(2.5)])
torch.Size([-1])
torch.Size([2**70])
torch.Size(1,2)
torch.Size(x=1)
torch.Size(range(3))
torch.Size([1,2])+(3,)
torch.Size([1,2])+[3]
torch.Size([1,2])+torch.Size([3])
(3,)+torch.Size([1,2])
[3]+torch.Size([1,2])
torch.Size([1,2])+(3.5,)
torch.Size([1,2])*2
2*torch.Size([1,2])
torch.Size([1,2])*1.5
torch.Size([1,2,3])[1:]
torch.Size([1,2,3])[::-1]
torch.Size([1,2,3])[0]
torch.Size([1,2,3])[5]
torch.Size([1,2,3])['a']
torch.Size([1,2,3]).numel()
torch.Size([]).numel()
torch.Size([1,2])==(1,2)
hash(torch.Size([1,2]))==hash((1,2))
torch.Size([1,2])==[1,2]
str(torch.Size([1,2]))
torch.Size([1,2]).count(1)
copy.copy(torch.Size([1,2]))
copy.deepcopy(torch.Size([1,2]))
isinstance(torch.Size([1]),tuple)
tuple.__add__(torch.Size([1]),(2,))
torch.Size([2,3]).__reduce__()
"""

LIMITS = """
torch.iinfo(torch.int32)
torch.iinfo(torch.uint8)
torch.iinfo(torch.uint64)
torch.iinfo(torch.int64)
torch.iinfo(torch.int64).max
torch.iinfo(torch.uint64).max
torch.iinfo()
torch.iinfo(torch.bool)
torch.iinfo(torch.qint8)
torch.iinfo(torch.quint8)
torch.iinfo(torch.qint32)
torch.iinfo(torch.float32)
torch.iinfo(3)
torch.iinfo(type=torch.int8)
torch.finfo(torch.int32)
torch.finfo()
torch.finfo(torch.bfloat16)
torch.finfo(torch.float16)
torch.finfo(torch.float64)
torch.finfo(torch.complex64)
torch.finfo(torch.float8_e4m3fn)
torch.finfo(torch.float8_e5m2)
[getattr(torch.finfo(torch.float8_e5m2),n) for n in ('bits','eps','max','min','tiny','smallest_normal','resolution','dtype')]
[getattr(torch.finfo(torch.float8_e4m3fn),n) for n in ('bits','eps','max','min','tiny','smallest_normal','resolution','dtype')]
[getattr(torch.finfo(torch.float16),n) for n in ('bits','eps','max','min','tiny','smallest_normal','resolution','dtype')]
[getattr(torch.finfo(torch.bfloat16),n) for n in ('bits','eps','max','min','tiny','smallest_normal','resolution','dtype')]
[getattr(torch.finfo(torch.float32),n) for n in ('bits','eps','max','min','tiny','smallest_normal','resolution','dtype')]
[getattr(torch.finfo(torch.float64),n) for n in ('bits','eps','max','min','tiny','smallest_normal','resolution','dtype')]
[getattr(torch.finfo(torch.complex128),n) for n in ('bits','eps','max','min','tiny','smallest_normal','resolution','dtype')]
torch.finfo(float)
torch.finfo('x')
torch.finfo(torch.float32)==torch.finfo(torch.float32)
torch.finfo(torch.float32)==torch.finfo(torch.complex64)
hash(torch.finfo(torch.float32))==hash(torch.finfo(torch.float32))
torch.iinfo(torch.int32)==torch.iinfo(torch.int32)
torch.finfo(torch.float32)!=torch.finfo(torch.float64)
torch.finfo(torch.float32)<torch.finfo(torch.float64)
"""


@pytest.mark.parametrize("expression", (DTYPES + DEVICES + SIZES + LIMITS).strip().split("\n"))
def test_value_types_agree_with_pytorch(expression):
    check(expression)
