"""ONNX: programs cannot be exported. Importing it works; export() says so when it is called."""
import contextlib
from enum import Enum

from gradus import _stand_ins

__all__ = ["ExportOptions", "OnnxExporterError", "OperatorExportTypes", "TrainingMode", "dynamo_export", "export", "is_in_onnx_export", "register_custom_op_symbolic"]


class OnnxExporterError(RuntimeError):
    """Never raised."""


class TrainingMode(Enum):
    """The purpose for which a model is exported."""

    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(Enum):
    """How operators are exported."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class ExportOptions:
    """Options that nothing reads."""

    def __init__(self, **options):
        self.__dict__.update(options)


def export(model, args=(), f=None, **options):
    """NotImplementedError: a model runs as the Python it is, of which there is no graph to export."""
    raise NotImplementedError("onnx.export: models cannot be exported; save a state_dict with gradus.save or gradus.safetensors, and load it into PyTorch to export it there")


def dynamo_export(model, *args, **options):
    """As export."""
    return export(model)


def is_in_onnx_export():
    """False."""
    return False


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Nothing: no operator is exported."""


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Nothing: no operator is exported."""


@contextlib.contextmanager
def select_model_mode_for_export(model, mode):
    """Inside, the module is in training or evaluation mode, as a TrainingMode says; afterwards in the mode it was in."""
    training = model.training
    if mode is not TrainingMode.PRESERVE:
        model.train(mode is TrainingMode.TRAINING)
    try:
        yield
    finally:
        model.train(training)


__getattr__ = _stand_ins.of_module(__name__)
