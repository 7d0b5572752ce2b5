"""Recurrent networks and cells. The modules store the weights and check arguments; operators such as lstm and gru_cell do the computation."""
from __future__ import annotations

import math
import numbers
import warnings

import gradus

from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_OPERATORS = {"RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu", "LSTM": "lstm", "GRU": "gru"}
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def _permuted(tensor, permutation):
    """Returns the hidden state `tensor` (layers, batch, size) with its batch dimension permuted, or unchanged if `permutation` is None."""
    return tensor if permutation is None else tensor.index_select(1, permutation)


def _check_numbers(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size):
    """Raises ValueError or TypeError for invalid arguments of a recurrent network."""
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
    if dropout > 0 and num_layers == 1:
        warnings.warn(f"dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, but got "
                      f"dropout={dropout} and num_layers={num_layers}", stacklevel=4)
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if mode not in tuple(_GATES):
        raise ValueError("Unrecognized RNN mode: " + mode)


class RNNBase(Module):
    """Base of recurrent networks, with their weights.

    Layer 0 has weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 and, with projections, weight_hr_l0. Layer k has the suffix _lk, and the second
    direction the suffix _reverse. Initial values are drawn uniformly between -1 / sqrt(hidden_size) and 1 / sqrt(hidden_size). Raises ValueError or
    TypeError for invalid arguments.
    """

    __constants__ = ["mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size"]

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0,
                 device=None, dtype=None):
        super().__init__()
        self.dropout = float(dropout)
        _check_numbers(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights = []
        for layer in range(num_layers):
            for reverse in range(2 if bidirectional else 1):
                self._all_weights.append(self._add_layer(layer, reverse, device, dtype))
        self.reset_parameters()

    def _add_layer(self, layer, reverse, device, dtype):
        """Registers the weights of one layer and direction. Returns their names."""
        directions, width = 2 if self.bidirectional else 1, _GATES[self.mode] * self.hidden_size
        state = self.proj_size or self.hidden_size
        sizes = {"weight_ih": (width, self.input_size if layer == 0 else state * directions), "weight_hh": (width, state)}
        if self.bias:
            sizes |= {"bias_ih": (width,), "bias_hh": (width,)}
        if self.proj_size > 0:
            sizes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = [f"{name}_l{layer}{'_reverse' if reverse else ''}" for name in sizes]
        for name, size in zip(names, sizes.values()):
            setattr(self, name, Parameter(gradus.empty(size, device=device, dtype=dtype)))
        return names

    @property
    def _flat_weights_names(self):
        """The names of all weights, layer by layer."""
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        """All weights, layer by layer; None for a weight that was deleted."""
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        """The parameters as a list of lists, with one list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Does nothing, because weights do not need to be contiguous in memory. PyTorch uses this method for cuDNN."""

    def reset_parameters(self):
        """Draws new random values for all weights."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):
        """Raises ValueError if the dtypes of input and weights differ, RuntimeError if the input's number of dimensions or last size is wrong."""
        weight = self._flat_weights[0]
        if weight is not None and input.dtype != weight.dtype and not gradus.is_autocast_enabled():
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: input.to({weight.dtype}), or "
                             f"convert model: model.to({input.dtype})")
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def _expected_state(self, input, batch_sizes, size):
        """Returns the shape (layers * directions, batch, size) of a state. batch_sizes: given if `input` is the data of a PackedSequence."""
        rows = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self.num_layers * (2 if self.bidirectional else 1), rows, size

    def get_expected_hidden_size(self, input, batch_sizes):
        """Returns the shape (layers * directions, batch, size) of the hidden state h, where size is proj_size or, if that is 0, hidden_size."""
        return self._expected_state(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raises RuntimeError with the text `msg` if the state hx does not have the expected size."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raises ValueError or RuntimeError if the input or the state has another dtype or size than expected."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """Returns the state with its batch dimension permuted, or unchanged if `permutation` is None."""
        return _permuted(hx, permutation)

    # In an RNN and a GRU the hidden state is one tensor. LSTM overrides the methods below, because its state is a pair of tensors.

    def _zeros(self, input, rows):
        """Returns an initial state of zeros for a batch of `rows` sequences."""
        directions = 2 if self.bidirectional else 1
        return gradus.zeros(self.num_layers * directions, rows, self.proj_size or self.hidden_size, dtype=input.dtype, device=input.device)

    def _check_state_dims(self, hx, batched):
        """Raises RuntimeError unless the state hx has 3 dimensions if `batched` is true, or 2 if it is false."""
        dims, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        if hx.dim() != dims:
            raise RuntimeError(f"For {kind} input, hx should also be {dims}-D but got {hx.dim()}-D tensor")

    def _map_state(self, function, hx):
        """Returns the state hx with `function` applied to its tensor. LSTM applies it to both tensors of its state."""
        return function(hx)

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D{self._TENSOR} instead")
        batched, batch_dim = input.dim() == 3, 0 if self.batch_first else 1
        if hx is not None:
            self._check_state_dims(hx, batched)
        if not batched:
            input = input.unsqueeze(batch_dim)
            hx = None if hx is None else self._map_state(lambda t: t.unsqueeze(1), hx)
        hx = self._zeros(input, input.size(batch_dim)) if hx is None else hx
        self.check_forward_args(input, hx, None)
        output, *state = self._operator(input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
                                        self.batch_first)
        if not batched:
            output, state = output.squeeze(batch_dim), [t.squeeze(1) for t in state]
        return output, self._as_state(state)

    def _forward_packed(self, input, hx):
        """Returns (output, final state) for a PackedSequence. The output is a PackedSequence too."""
        data, batch_sizes, sorted_indices, unsorted_indices = input
        hx = self._zeros(data, int(batch_sizes[0])) if hx is None else self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(data, hx, batch_sizes)
        output, *state = self._operator(data, batch_sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                                        self.bidirectional)
        output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return output, self.permute_hidden(self._as_state(state), unsorted_indices)

    _TENSOR = ""  # The class RNN sets it to " tensor", which its error text in forward then contains, as in PyTorch.

    @property
    def _operator(self):
        """The operator that computes the whole network, e.g. gradus.lstm for mode "LSTM"."""
        return getattr(gradus, _OPERATORS[self.mode])

    def _as_state(self, tensors):
        """Returns the final state in the form that forward returns. tensors: the state tensors that the operator returned."""
        return tensors[0]

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        return text + "".join(f", {name}={getattr(self, name)}" for name, default in defaults.items() if getattr(self, name) != default)

    def __setstate__(self, state):
        super().__setstate__({name: value for name, value in state.items() if name not in ("_flat_weights", "_flat_weights_names", "_flat_weight_refs")})
        self.__dict__.setdefault("proj_size", 0)
        if "all_weights" in state:  # pickles of old versions contain the names of the weights under this key
            self.__dict__.pop("all_weights", None)
            self._all_weights = state["all_weights"]
        if self._all_weights and not isinstance(self._all_weights[0][0], str):  # even older pickles contain the parameters themselves
            self._all_weights = [[name for name in self._parameters if name.endswith(f"_l{layer}{end}")]
                                 for layer in range(self.num_layers) for end in ([""] + ["_reverse"] * bool(self.bidirectional))]


class RNN(RNNBase):
    """A network with h_t = tanh(weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh), or with relu instead of tanh (Elman, 1990).

    A call takes the input (steps, batch, input_size) and the initial state hx (layers * directions, batch, hidden_size), which is 0 when None. It
    returns (output, final state); output has the shape (steps, batch, directions * hidden_size). batch_first: the batch is the first dimension of
    input and output. dropout: the dropout probability between layers in training mode. The batch dimension may be missing. If the input is a
    PackedSequence, so is the output.

    >>> output, state = nn.RNN(10, 20, 2)(gradus.randn(5, 3, 10))
    >>> tuple(output.shape), tuple(state.shape)
    ((5, 3, 20), (2, 3, 20))
    """

    _TENSOR = " tensor"

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)


class LSTM(RNNBase):
    """A long short-term memory network (Hochreiter and Schmidhuber, 1997), whose state is a pair (h, c).

    A call takes the input (steps, batch, input_size) and the initial state hx = (h, c), which is 0 when None. It returns (output, final (h, c)). h
    and c have the shape (layers * directions, batch, hidden_size), output has the shape (steps, batch, directions * hidden_size). proj_size: if
    positive, h is projected to that size, which then replaces hidden_size in h and output. batch_first: the batch is the first dimension of input and
    output. dropout: the dropout probability between layers in training mode. The batch dimension may be missing. If the input is a PackedSequence, so
    is the output.

    >>> output, (h, c) = nn.LSTM(10, 20, bidirectional=True)(gradus.randn(5, 3, 10))
    >>> tuple(output.shape), tuple(c.shape)
    ((5, 3, 40), (2, 3, 20))
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        """Returns the shape (layers * directions, batch, hidden_size) of the cell state c."""
        return self._expected_state(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raises ValueError or RuntimeError if the input or a state has another dtype or size than expected."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        """Returns (h, c) with their batch dimensions permuted, or unchanged if `permutation` is None."""
        return hx if permutation is None else (_permuted(hx[0], permutation), _permuted(hx[1], permutation))

    def _zeros(self, input, rows):
        h = super()._zeros(input, rows)
        return h, gradus.zeros(h.size(0), rows, self.hidden_size, dtype=input.dtype, device=input.device) if self.proj_size else h

    def _check_state_dims(self, hx, batched):
        dims, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        if hx[0].dim() != dims or hx[1].dim() != dims:
            raise RuntimeError(f"For {kind} input, hx and cx should also be {dims}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors")

    def _map_state(self, function, hx):
        return function(hx[0]), function(hx[1])

    def _as_state(self, tensors):
        return tuple(tensors)


class GRU(RNNBase):
    """A network of gated recurrent units (Cho et al., 2014).

    A call takes the input (steps, batch, input_size) and the initial state hx (layers * directions, batch, hidden_size), which is 0 when None. It
    returns (output, final state); output has the shape (steps, batch, directions * hidden_size). batch_first: the batch is the first dimension of
    input and output. dropout: the dropout probability between layers in training mode. The batch dimension may be missing. If the input is a
    PackedSequence, so is the output.

    >>> output, state = nn.GRU(10, 20, batch_first=True)(gradus.randn(3, 5, 10))
    >>> tuple(output.shape), tuple(state.shape)
    ((3, 5, 20), (1, 3, 20))
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """Base of recurrent cells, with weight_ih, weight_hh, bias_ih and bias_hh. The biases are None if `bias` is false.

    num_chunks: the number of gates. Initial values are drawn uniformly between -1 / sqrt(hidden_size) and 1 / sqrt(hidden_size).
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        options, width = {"device": device, "dtype": dtype}, num_chunks * hidden_size
        self.weight_ih = Parameter(gradus.empty((width, input_size), **options))
        self.weight_hh = Parameter(gradus.empty((width, hidden_size), **options))
        self.register_parameter("bias_ih", Parameter(gradus.empty(width, **options)) if bias else None)
        self.register_parameter("bias_hh", Parameter(gradus.empty(width, **options)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new random values for all weights."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        text = "{input_size}, {hidden_size}"
        if "bias" in self.__dict__ and self.bias is not True:
            text += ", bias={bias}"
        if "nonlinearity" in self.__dict__ and self.nonlinearity != "tanh":
            text += ", nonlinearity={nonlinearity}"
        return text.format(**self.__dict__)

    def _check_dims(self, input, **states):
        """Raises ValueError if the input or a state has neither one nor two dimensions."""
        for name, t in {"input": input, **states}.items():
            if t is not None and t.dim() not in (1, 2):
                raise ValueError(f"{self._get_name()}: Expected {name} to be 1D or 2D, got {t.dim()}D instead")

    def _step(self, operator, input, hx):
        """Returns the next state of a cell whose state is one tensor. hx: the current state, zeros when None. operator: e.g. gradus.gru_cell."""
        self._check_dims(input, hidden=hx)
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = gradus.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        made = operator(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return made if batched else made.squeeze(0)


class RNNCell(RNNCellBase):
    """Computes one step of an RNN: returns the state after `input` (batch, input_size), starting from state hx (batch, hidden_size).

    hx is 0 when None. The batch dimension may be missing. Raises ValueError if `input` or hx has neither 1 nor 2 dimensions.

    >>> tuple(nn.RNNCell(10, 20)(gradus.randn(3, 10)).shape)
    (3, 20)
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        self._check_dims(input, hidden=hx)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(gradus.rnn_tanh_cell if self.nonlinearity == "tanh" else gradus.rnn_relu_cell, input, hx)


class LSTMCell(RNNCellBase):
    """Computes one step of an LSTM: returns the state (h, c) after `input` (batch, input_size), starting from state hx = (h, c).

    h and c have the shape (batch, hidden_size). hx is 0 when None. The batch dimension may be missing. Raises ValueError if `input`, h or c has
    neither 1 nor 2 dimensions.

    >>> h, c = nn.LSTMCell(10, 20)(gradus.randn(3, 10))
    >>> tuple(h.shape), tuple(c.shape)
    ((3, 20), (3, 20))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        self._check_dims(input, **({} if hx is None else {"hx[0]": hx[0], "hx[1]": hx[1]}))
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = gradus.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            hx = zeros, zeros
        elif not batched:
            hx = hx[0].unsqueeze(0), hx[1].unsqueeze(0)
        h, c = gradus.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """Computes one step of a GRU: returns the state after `input` (batch, input_size), starting from state hx (batch, hidden_size).

    hx is 0 when None. The batch dimension may be missing. Raises ValueError if `input` or hx has neither 1 nor 2 dimensions.

    >>> tuple(nn.GRUCell(10, 20)(gradus.randn(3, 10)).shape)
    (3, 20)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step(gradus.gru_cell, input, hx)
