"""Tests saving complete modules and objects of classes that the program defines. Loading them is refused by default, and works if the caller allows
it. Also tests map_location."""
import io
import os
import pickle
import subprocess
import sys
import zipfile

import pytest

import gradus
from gradus import nn, serialization
from oracle import torch

ran = []


class Own:
    """A class as a user's program may define it. Its objects hold a tensor and a view of that tensor."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.view = tensor[1:]


class OwnModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.act = gradus.relu

    def forward(self, x):
        return self.act(self.layer(x))


class OwnTensor(gradus.Tensor):
    pass


class OwnState(gradus.Tensor):
    def __setstate__(self, state):
        self.seen = state


def run(what):
    ran.append(what)


class Runs:
    def __reduce__(self):
        return run, ("ran",)


def saved(obj, library=gradus, **options):
    file = io.BytesIO()
    library.save(obj, file, **options)
    file.seek(0)
    return file


def test_load_runs_no_code_by_default():
    for options in ({}, {"weights_only": True}, {"weights_only": None}):
        with pytest.raises(pickle.UnpicklingError, match="Unsupported global: GLOBAL .* was not an allowed global by default"):
            gradus.load(saved(Runs()), **options)
    assert ran == []


def test_load_with_weights_only_false_runs_code_of_the_file():
    gradus.load(saved(Runs()), weights_only=False)
    assert ran.pop() == "ran" and not ran


@pytest.mark.parametrize("make", [
    lambda: nn.Linear(2, 2), lambda: nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.LayerNorm(4), nn.Dropout(0.5)),
    lambda: nn.TransformerEncoderLayer(2, 1, 4), lambda: nn.ModuleDict({"a": nn.Embedding(3, 2)}), OwnModule,
    lambda: nn.ParameterList([gradus.ones(2)]), lambda: nn.BatchNorm1d(2),
], ids=["linear", "sequential", "transformer", "dict", "own", "parameters", "batch-norm"])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_saving_and_loading_modules(make, protocol):
    module = make()
    loaded = gradus.load(saved(module, pickle_protocol=protocol), weights_only=False)
    assert type(loaded) is type(module) and str(loaded) == str(module)
    assert all(gradus.equal(a, b) for a, b in zip(module.state_dict().values(), loaded.state_dict().values(), strict=True))
    assert [p.requires_grad for p in loaded.parameters()] == [p.requires_grad for p in module.parameters()]


def test_a_module_with_hooks_and_an_optimizer():
    module = nn.Linear(2, 2)
    module.register_forward_hook(double)
    optimizer = gradus.optim.Adam(module.parameters(), lr=0.5)
    module(gradus.ones(1, 2)).sum().backward()
    optimizer.step()
    loaded, loaded_optimizer = gradus.load(saved([module, optimizer]), weights_only=False)
    assert gradus.equal(loaded(gradus.ones(1, 2)), module(gradus.ones(1, 2)))
    assert loaded_optimizer.param_groups[0]["params"][0] is loaded.weight
    assert loaded_optimizer.state[loaded.weight]["step"].item() == 1


def double(module, args, output):
    return 2 * output


def test_loaded_objects_of_user_classes_share_storages():
    loaded = gradus.load(saved(Own(gradus.zeros(3))), weights_only=False)
    loaded.tensor[1] = 5
    assert type(loaded) is Own and loaded.view.tolist() == [5.0, 0.0]


def test_saving_subclasses_of_tensor():
    x = gradus.ones(2).as_subclass(OwnTensor)
    x.note = [1]
    loaded = gradus.load(saved(x), weights_only=False)
    assert type(loaded) is OwnTensor and loaded.note == [1] and loaded.tolist() == [1.0, 1.0]
    x = gradus.ones(2).as_subclass(OwnState)
    x.note = [1]
    assert gradus.load(saved(x), weights_only=False).seen == {"note": [1]}


def test_functions_and_classes_are_saved_by_name():
    things = [gradus.relu, nn.functional.relu, nn.Linear, gradus.optim.SGD, gradus.optim.lr_scheduler.StepLR, gradus.Tensor, gradus.Size, double, Own, len,
              gradus.float32, gradus.device("cpu"), gradus.strided, gradus.Size([1])]
    assert all(a is b or a == b for a, b in zip(gradus.load(saved(things), weights_only=False), things, strict=True))


@pytest.mark.parametrize("make", [
    lambda library: library.nn.Linear(2, 2), lambda library: library.nn.Sequential(library.nn.Linear(2, 2), library.nn.LayerNorm(2), library.nn.GELU()),
    lambda library: library.nn.Embedding(3, 2), lambda library: library.nn.functional.relu, lambda library: library.relu,
    lambda library: library.optim.SGD, lambda library: library.optim.lr_scheduler.StepLR, lambda library: library.Tensor,
    lambda library: library.Size((1, 2)), lambda library: library.nn.MSELoss(),
], ids=["linear", "sequential", "embedding", "functional", "function", "optimizer", "scheduler", "tensor", "size", "loss"])
def test_modules_and_classes_are_exchanged_with_pytorch(make):
    ours, theirs = make(gradus), make(torch)
    for loaded, wanted in ((gradus.load(saved(theirs, torch), weights_only=False), ours), (torch.load(saved(ours), weights_only=False), theirs)):
        assert type(loaded) is type(wanted), (loaded, wanted)
        if isinstance(wanted, (nn.Module, torch.nn.Module)):
            assert str(loaded) == str(wanted) and list(loaded.state_dict()) == list(wanted.state_dict())
        else:
            assert loaded == wanted


def test_the_text_of_the_refusal_is_that_of_pytorch():
    def lines(library, module):
        with pytest.raises(pickle.UnpicklingError) as found:
            library.load(saved(module, library))
        text = str(found.value).replace("In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. ", "")
        return text.split("\n\nCheck the documentation")[0]

    assert lines(gradus, nn.Linear(1, 1)) == lines(torch, torch.nn.Linear(1, 1))


def test_safe_globals_allow_the_names_of_gradus_and_pytorch():
    """Allowing a class of Gradus also allows PyTorch's class of the same name."""
    with serialization.safe_globals([nn.Linear, set, gradus.nn.modules.linear.Identity]):
        for library in (gradus, torch):
            assert type(gradus.load(saved(library.nn.Linear(1, 1), library))) is nn.Linear
        with pytest.raises(pickle.UnpicklingError, match="Bilinear"):
            gradus.load(saved(torch.nn.Bilinear(1, 1, 1), torch))
    assert serialization.get_safe_globals() == []


def test_loading_an_unknown_class_is_an_attribute_error():
    file = _renamed(saved(nn.Linear(1, 1)), b"torch.nn.modules.linear\nLinear", b"torch.nn.modules.linear\nCircular")
    with pytest.raises(AttributeError, match="torch.nn.modules.linear.Circular, which Gradus does not have"):
        gradus.load(file, weights_only=False)


def _renamed(file, before, after):
    """Returns a copy of the ZIP archive `file` with `before` replaced by `after` in all records, e.g. the name of a class in its pickle."""
    result = io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(result, "w") as written:
        for name in archive.namelist():
            written.writestr(name, archive.read(name).replace(before, after))
    result.seek(0)
    return result


def test_pickle_module_argument():
    class Module:
        class Unpickler(pickle.Unpickler):
            def __init__(self, file, *, encoding, mark):
                super().__init__(file, encoding=encoding)
                ran.append((encoding, mark))

    assert gradus.load(saved([gradus.ones(1)]), pickle_module=Module, encoding="latin1", mark=3)[0].tolist() == [1.0]
    assert ran.pop() == ("latin1", 3)
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        gradus.load(saved(1), pickle_module=pickle, weights_only=True)
    with pytest.warns(UserWarning, match="pickle_load_args only works if `weights_only=False`"):
        gradus.load(saved(1), encoding="utf-8")


def test_environment_variables_that_set_weights_only(monkeypatch):
    file = saved(nn.Linear(1, 1)).getvalue()
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        assert type(gradus.load(io.BytesIO(file))) is nn.Linear
    with pytest.raises(pickle.UnpicklingError):
        gradus.load(io.BytesIO(file), weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "yes")
    with pytest.raises(RuntimeError, match="Only one of"):
        gradus.load(io.BytesIO(file))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        gradus.load(io.BytesIO(file), weights_only=False)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize(("where", "device"), [
    (None, "cpu"), ("cpu", "cpu"), (b"cpu", "cpu"), (gradus.device("cpu"), "cpu"), ("meta", "meta"), (gradus.device("meta"), "meta"), ({}, "cpu"),
    ({"cpu": "meta"}, "meta"), ({"cpu": gradus.device("meta")}, "meta"), ({"cuda:0": "meta"}, "cpu"), (lambda storage, place: storage, "cpu"),
    (lambda storage, place: None, "cpu"), (lambda storage, place: storage.clone(), "cpu"),
])
def test_map_location(where, device, weights_only):
    x = gradus.load(saved(gradus.arange(3)), map_location=where, weights_only=weights_only)
    assert x.device.type == device and x.shape == (3,) and (device == "meta" or x.tolist() == [0, 1, 2])


@pytest.mark.parametrize(("where", "kind", "message"), [
    ("cuda", RuntimeError, "Attempting to deserialize object on a CUDA device"),
    ("nowhere", RuntimeError, "don't know how to restore data location of torch.storage.UntypedStorage .tagged with nowhere"),
    ({"cpu": "cuda:1"}, RuntimeError, "Attempting to deserialize object on a CUDA device"), (3, TypeError, "map_location"),
    (lambda storage, place: "cpu", TypeError, "map_location"),
])
def test_invalid_map_location_is_refused(where, kind, message):
    for weights_only in (True, False):
        with pytest.raises(kind, match=message):
            gradus.load(saved(gradus.arange(3)), map_location=where, weights_only=weights_only)


def test_an_exception_in_map_location_is_propagated():
    def raises(storage, place):
        raise ValueError("of the caller")

    for weights_only in (True, False):
        with pytest.raises(ValueError, match="of the caller"):
            gradus.load(saved(gradus.arange(3)), map_location=raises, weights_only=weights_only)


def test_loading_a_safetensors_file(tmp_path):
    path = tmp_path / "a.safetensors"
    gradus.safetensors.save_file({"x": gradus.arange(3)}, path)
    assert gradus.load(path)["x"].tolist() == [0, 1, 2]
    assert gradus.load(path, map_location="meta")["x"].device.type == gradus.load(path, gradus.device("meta"))["x"].device.type == "meta"
    for where in ({}, lambda storage, place: storage):
        with pytest.raises(RuntimeError, match="map_location is not supported"):
            gradus.load(path, map_location=where)


def test_files_are_exchanged_with_a_program_under_as_torch(tmp_path):
    """A program under as_torch can load modules that Gradus has saved, and vice versa."""
    program = "import sys, torch\nm = torch.load(sys.argv[1], weights_only=False)\ntorch.save(m, sys.argv[2])\nassert type(m) is torch.nn.Linear\n"
    (tmp_path / "program.py").write_text(program)
    module = nn.Linear(2, 3)
    gradus.save(module, tmp_path / "a.pt")
    folder = os.path.dirname(os.path.dirname(gradus.__file__))
    subprocess.run([sys.executable, "-m", "gradus.as_torch", tmp_path / "program.py", tmp_path / "a.pt", tmp_path / "b.pt"], check=True,
                   env={**os.environ, "PYTHONPATH": folder})
    assert gradus.equal(gradus.load(tmp_path / "b.pt", weights_only=False).weight, module.weight)
