"""Compares statistics, splits, small products, special functions and gradus.linalg with PyTorch: values, gradients and errors."""
import pytest
from beside_torch import check

X = "x=torch.linspace(-1,2,24,dtype=torch.float64).sin().reshape(2,3,4).requires_grad_()"
M = "x=torch.linspace(-1,2,12,dtype=torch.float64).sin().reshape(3,4).requires_grad_()"

# Expressions of the tensor x. The test compares the value y of each, and the gradient of (y * y).sum() with respect to x.
OF_X = """
torch.quantile(x,0.3)
torch.quantile(x,tensor([0.1,0.5,1.],dtype=torch.float64),dim=1,keepdim=True)
torch.quantile(x,0.4,dim=-1,interpolation='lower')
torch.quantile(x,0.4,dim=0,interpolation='higher')
torch.quantile(x,0.4,dim=1,interpolation='midpoint')
x.quantile(0.4,interpolation='nearest',keepdim=True)
x.nanquantile(0.6,dim=2)
torch.trapezoid(x)
torch.trapezoid(x,dx=0.5,dim=1)
torch.trapezoid(x,tensor([0.,1.,3.]),dim=1)
torch.trapz(x,x.detach().cumsum(-1))
torch.cumulative_trapezoid(x,tensor([0.,1.,3.,4.]))
torch.cumulative_trapezoid(x,dim=0)
torch.dist(x,x.detach().flip(0),3)
x.dist(x.detach()*2)
x.sigmoid().logit()
x.sigmoid().logit(0.3)
torch.lgamma(x.exp())
torch.digamma(x.exp())
torch.polygamma(2,x.exp())
torch.erfinv(x*0.9)
x.mode(1).values
x.msort()
x.hsplit(3)[1]
x.vsplit([1])[0]
x.dsplit(2)[1]
x.diagflat(1)
torch.linalg.vector_norm(x,3,dim=(0,2),keepdim=True)
torch.linalg.vecdot(x,x.detach()+1,dim=1)
torch.addbmm(x[0,:,:3],x,x.detach().transpose(1,2),beta=0.5,alpha=2)
torch.nn.functional.unfold(x,2,padding=1,stride=(1,2))
torch.nn.functional.unfold(x.unsqueeze(0),(2,3),dilation=(1,1))
torch.nn.functional.fold(x.reshape(1,4,6),(3,4),2)
torch.nn.functional.fold(x.reshape(4,6),(5,3),(2,2),dilation=(2,1),padding=(0,0))
"""

OF_M = """
x.cov()
torch.cov(x,correction=0,fweights=tensor([1,2,0,3]))
torch.cov(x,aweights=tensor([1.,2.,0.5,3.],dtype=torch.float64))
torch.cov(x,fweights=tensor([1,2,1,3]),aweights=tensor([1.,2.,0.5,3.],dtype=torch.float64))
torch.cov(x[0])
x.corrcoef()
torch.addr(x,x[:,0],x[1],beta=2,alpha=-1)
torch.addr(x,x[:,0],x[1],beta=0)
torch.linalg.multi_dot([x,x.t(),x[:,:2],x[:2,1]])
torch.linalg.matrix_power(x[:,:3],5)
torch.linalg.matrix_power(x[:,:3],0)+x[:,:3]
"""

PLAIN = """
tuple(tensor([[3,1,3,1],[2,2,0,0]]).mode())
tensor([[3,1,3,1],[2,2,0,0]]).mode(0,True).indices
torch.mode(tensor([5]*9+[3]*20+[4]*20)).indices
torch.mode(tensor([True,False,True])).values
torch.mode(tensor(2.))[0]
torch.mode(tensor([1.,float('nan'),float('nan')])).values
torch.mode(torch.ones(0))
torch.mode(tensor([1,1,2]),out=(torch.empty(0,dtype=torch.int64),torch.empty(0,dtype=torch.int64)))[0]
torch.argwhere(tensor([[1,0],[0,2]]))
torch.argwhere(tensor(3))
torch.addr(zeros(2,2,dtype=torch.bool),tensor([True,False]),tensor([True,True]),beta=True,alpha=True)
torch.addr(ones(2,2,dtype=torch.int64),tensor([1,2]),tensor([1,2]),beta=0.5)
torch.addr(ones(2,2),ones(2,2),ones(2))
ones(2,2).addr_(ones(2),ones(2))
ones(2,2).addbmm_(ones(3,2,2),ones(3,2,2),alpha=2)
torch.addbmm(ones(2,2),ones(2,2),ones(2,2,2))
torch.logit(tensor([0.,0.5,1.,2.]))
torch.logit(tensor([1]),out=torch.empty(0))
tensor([0.25]).logit_(0.3)
tensor([0.25]).digamma_()
torch.polygamma(-1,ones(1))
torch.polygamma(1,tensor([0.,-0.5,3.,float('nan')]))
torch.digamma(tensor([0.,-0.,-1.,-0.5,float('nan')]))
torch.erfinv(tensor([-1.,1.,2.,0.999999,float('nan')]))
torch.lgamma(tensor([0.,-1.,-0.5,100.,float('inf')]))
torch.lgamma(tensor([2,3]))
torch.quantile(tensor([1.,float('nan'),3.]),0.5)
torch.nanquantile(tensor([[1.,float('nan'),3.],[float('nan')]*3]),0.5,dim=1)
torch.quantile(ones(3),1.5)
torch.quantile(ones(3),tensor(2.))
torch.quantile(ones(3,dtype=torch.int64),0.5)
torch.quantile(ones(3),.5,interpolation='x')
torch.quantile(torch.ones(0),.5)
torch.quantile(tensor([1.,2.]),tensor([0.5,1.]),out=torch.empty(0))
torch.cov(torch.ones(2,2,2))
torch.cov(torch.ones(2,3,dtype=torch.bool))
torch.cov(ones(3),correction=5)
torch.cov(ones(2,3),fweights=ones(3))
torch.cov(ones(2,3),fweights=tensor([1,-1,1]))
torch.cov(ones(2,3),fweights=tensor([0,0,0]))
torch.cov(ones(2,3),aweights=tensor([1,1,1]))
torch.corrcoef(tensor([[1+1j,2.],[0,1j]]))
torch.trapezoid(torch.ones(3),torch.ones(2))
torch.trapezoid(torch.ones(2,0))
torch.trapezoid(tensor([True,False]))
torch.trapezoid(tensor([1,2,4]))
torch.trapezoid(ones(4),tensor([[1.],[3.]]))
torch.cumulative_trapezoid(ones(4),tensor([[1.],[3.]]))
torch.hsplit(tensor(1),2)
torch.vsplit(torch.ones(3),2)
torch.hsplit(torch.ones(3,3),2)
torch.linalg.matrix_power(ones(2,3),2)
torch.linalg.multi_dot([ones(2,2)])
torch.linalg.vector_norm(tensor([3.,4.]),dtype=torch.float64)
torch.nn.functional.unfold(torch.ones(1,1,2,2),3)
torch.nn.functional.fold(torch.ones(1,3,1),(2,2),2)
torch.nn.functional.fold(torch.ones(1,4,2),(2,2),2)
"""


def lines(text):
    return text.strip().split("\n")


@pytest.mark.parametrize("setup, expression", [(X, e) for e in lines(OF_X)] + [(M, e) for e in lines(OF_M)])
def test_values_and_gradients(setup, expression):
    check(f"{setup}; y={expression}; (y*y).sum().backward(); y.tolist() and (y.detach(), x.grad)")


@pytest.mark.parametrize("expression", lines(PLAIN))
def test_values_and_errors(expression):
    check(expression)
