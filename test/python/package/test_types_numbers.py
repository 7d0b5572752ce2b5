"""Compares conversions of tensors to numbers, sequences and text, and numbers as arguments, with PyTorch."""
import pytest
from beside_torch import check

import gradus

ELEMENTS = """
bool(tensor([]))
bool(tensor([1,2]))
bool(tensor([[2.]]))
bool(zeros(2,device='meta'))
bool(zeros((),device='meta'))
bool(tensor(1j))
bool(tensor(float('nan')))
int(tensor([]))
int(tensor([1,2]))
int(tensor(2.7))
int(tensor(float('nan')))
int(tensor(float('inf')))
int(tensor(1e30))
int(tensor(1+2j))
float(tensor([1,2]))
float(tensor([]))
float(tensor(1+2j))
float(tensor(1+0j))
complex(tensor(1.5))
complex(tensor([1,2]))
complex(tensor(1+2j))
int(tensor(True))
tensor(2**64-1,dtype=torch.uint64).item()
tensor(2**64-1,dtype=torch.uint64).tolist()
float(tensor(2**64-1,dtype=torch.uint64))
range(5)[tensor(2)]
range(5)[tensor([2])]
range(5)[tensor(True)]
range(5)[tensor(2.)]
range(5)[tensor([1,2])]
tensor(2.).__index__()
tensor([1,2]).__index__()
tensor([1,2]).item()
tensor([]).item()
tensor([[3]]).item()
zeros((),device='meta').item()
tensor(1).item(2)
tensor(2.5,requires_grad=True).item()
float(tensor(2.5,requires_grad=True))
tensor([[1,2],[3,4]]).tolist()
zeros(2,0).tolist()
zeros(0,2).tolist()
tensor(3.5).tolist()
zeros(2,device='meta').tolist()
tensor([1+2j]).tolist()
tensor([1.1],dtype=torch.float16).tolist()
tensor([1.1],dtype=torch.bfloat16).tolist()
tensor([True]).tolist()
len(tensor(3))
len(zeros(2,3))
len(zeros(0,3))
list(tensor(3))
iter(tensor(3))
list(tensor([1,2]))
type(iter(zeros(2)))
3 in tensor([1,2,3])
3.5 in tensor([1,2,3])
tensor(3) in tensor([1,2,3])
'a' in tensor([1])
None in tensor([1])
[1] in tensor([1])
True in tensor([1])
1j in tensor([1])
format(tensor(3.14159),'.2f')
format(tensor([3.14159]),'.2f')
format(tensor([1.,2.]),'')
format(tensor(1+2j),'.1f')
format(tensor(3),'05d')
format(tensor(True),'d')
f"{tensor(1.5,requires_grad=True)}"
f"{tensor(1.5,requires_grad=True):.3f}"
f"{zeros((),device='meta'):.3f}"
"""

ARGUMENTS = """
torch.zeros(2)+2**70
torch.zeros(2)*10**400
torch.add(zeros(2), np.float32(2.5))
torch.add(zeros(2), np.bool_(True))
torch.add(zeros(2,dtype=torch.int8), np.int64(3)).dtype
torch.add(zeros(2,dtype=torch.int8), np.float32(3)).dtype
torch.add(zeros(2,dtype=torch.int8), np.longdouble(1.5))
torch.full((2,), np.float16(1.5))
torch.full((2,), tensor(2.5))
torch.full((2,), tensor(2.5,requires_grad=True))
torch.full((2,), tensor([2.5]))
torch.zeros(True)
torch.zeros(tensor(2))
torch.zeros(tensor(2.))
torch.sum(zeros(2,3),dim=2**70)
torch.unsqueeze(zeros(2),2**70)
torch.unsqueeze(zeros(2),True)
torch.unsqueeze(zeros(2),tensor(0))
torch.unsqueeze(zeros(2),tensor([0]))
torch.unsqueeze(zeros(2),tensor(True))
torch.unsqueeze(zeros(2),np.int8(0))
torch.unsqueeze(zeros(2),np.bool_(0))
torch.unsqueeze(zeros(2),0.)
"""

# Expressions with integers from 2**63 on, which only uint64 and floating dtypes can hold.
LARGE = """
tensor(2**63)
tensor([1,2**63])
tensor(2**63,dtype=torch.uint64)
tensor([2**63,1.5])
tensor(2**63,dtype=torch.uint64).item()
torch.full((2,),2**63)
torch.full((2,),2**64-1,dtype=torch.uint64)
torch.full((2,),2**63,dtype=torch.float32)
torch.full((2,),2**64)
torch.full_like(zeros(2,dtype=torch.uint64),2**63)
torch.scalar_tensor(2**63)
ones(2).new_full((1,),2**63)
zeros(2,dtype=torch.uint64).fill_(2**63)
zeros(2,dtype=torch.int64).fill_(2**63)
zeros(2,dtype=torch.int64).masked_fill(tensor([True,False]),2**63)
zeros(2).fill_(2**63)
tensor([1,2])+2**63
tensor([1,2])+tensor(2**63,dtype=torch.uint64)
tensor([1.,2.])+2**63
tensor([1.,2.])*2**63
tensor([1],dtype=torch.uint8)+2**63
tensor([1,2],dtype=torch.uint64)*2**63
tensor([1,2],dtype=torch.uint64)==2**63
tensor([1,2**63],dtype=torch.uint64)==2**63
tensor([1.,2.])<2**63
tensor([1.,2.**63])==2**63
tensor([1,2])|2**63
tensor([1,2],dtype=torch.uint64)^2**63
tensor([1,2]).clamp(max=2**63)
tensor([1.,2.]).clamp(max=2**63)
tensor([1,2]).pow(2**63)
tensor([1.,2.]).pow(2**63)
tensor([1.,2.]).add(tensor([1.,2.]),alpha=2**63)
torch.add(tensor([1,2]),tensor([1,2]),alpha=2**63)
torch.addcmul(ones(2),ones(2),ones(2),value=2**63)
torch.where(tensor([True,False]),2**63,2**63)
torch.result_type(tensor([1]),2**63)
torch.arange(2**63)
torch.linspace(0,2**63,3)
torch.nn.functional.pad(tensor([1],dtype=torch.uint64),(1,1),value=2**63)
2**63 in tensor([2**63],dtype=torch.uint64)
torch.addmm(ones(2,2),ones(2,2),ones(2,2),alpha=2**63)
ones(2)+2**64
ones(2)-(-2**63-1)
"""


@pytest.mark.parametrize("expression", (ELEMENTS + ARGUMENTS + LARGE).strip().split("\n"))
def test_elements_and_number_arguments_agree_with_pytorch(expression):
    check(expression)


@pytest.mark.parametrize("call, text", [
    (lambda x: x.nope, "'Tensor' object has no attribute 'nope'"),
    (lambda x: gradus.Tensor.nope, "type object 'Tensor' has no attribute 'nope'"),
    (lambda x: x(), "'Tensor' object is not callable"),
    (lambda x: x + "a", "unsupported operand type(s) for +: 'Tensor' and 'str'"),
    (lambda x: gradus.zeros(x), "zeros(): argument 'size' (position 1) must be tuple of ints, not Tensor"),
    (lambda x: gradus.cat(x), "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
])
def test_error_texts_name_the_type_tensor(call, text):
    with pytest.raises((TypeError, AttributeError)) as error:
        call(gradus.ones(2))
    assert str(error.value) == text
    assert gradus.Tensor.__module__ == "gradus" and repr(gradus.Tensor) == "<class 'gradus.Tensor'>"
