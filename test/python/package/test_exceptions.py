"""Checks that exceptions have PyTorch's text, and a note that names the operators through which the error passed."""
import threading

import pytest

import gradus as torch

NN = torch.nn.functional

CASES = [  # (call, error text, operators named in the exception's note "Raised in ..." or None)
    (lambda: torch.ones(2) + torch.ones(3), "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0", "add"),
    (lambda: torch.ones(2).sum(dim=5), "Dimension out of range (expected to be in range of [-1, 0], but got 5)", "sum"),
    (lambda: torch.ones(2, 3) @ torch.ones(2, 3), "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", "matmul: mm"),
    (lambda: torch.ones(2)[2], "index 2 is out of bounds for dimension 0 with size 2", None),
    (lambda: torch.ones(2).view(3), "shape '[3]' is invalid for input of size 2", "view"),
    (lambda: NN.layer_norm(torch.ones(2, 3), (4,)),
     "Given normalized_shape=[4], expected input with shape [*, 4], but got input of size [2, 3]", "layer_norm"),
    (lambda: torch.allclose(torch.zeros(2), torch.zeros(2), rtol=-1), "rtol must be greater than or equal to zero, but got -1", "allclose: isclose"),
]


@pytest.mark.parametrize(("call", "text", "note"), CASES)
def test_the_operators_are_named_in_a_note_and_not_in_the_text(call, text, note):
    with pytest.raises((RuntimeError, IndexError)) as caught:
        call()
    assert str(caught.value) == text
    notes = [line for line in getattr(caught.value, "__notes__", []) if line.startswith("Raised in ")]
    assert notes == ([f"Raised in {note}"] if note else [])


def test_the_text_of_an_error_can_be_matched_from_its_beginning():
    with pytest.raises(RuntimeError, match="^The size"):
        torch.ones(2).mul_(torch.ones(3))


def test_an_error_in_the_backward_pass_has_a_note_with_the_node():
    x = torch.ones(3, requires_grad=True)
    y = x * x
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="^one of the variables needed for gradient computation") as caught:
        y.sum().backward()
    assert any("MulBackward0" in note for note in caught.value.__notes__)


def test_the_first_error_of_a_thread_keeps_its_note_in_another():
    found = []

    def work():
        try:
            torch.ones(2) + torch.ones(3)
        except RuntimeError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert str(found[0]).startswith("The size") and found[0].__notes__ == ["Raised in add"]


def test_an_exception_raised_by_a_hook_is_propagated_unchanged():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    error = KeyError("mine")

    def hook(grad):
        raise error

    y.register_hook(hook)
    with pytest.raises(KeyError) as caught:
        y.sum().backward()
    assert caught.value is error and not hasattr(error, "__notes__")
