"""The names of torch.onnx, so that programs can import them. Models cannot be exported: export() raises NotImplementedError."""
import contextlib
from enum import Enum

from gradus import _stand_ins

__all__ = ["ExportOptions", "OnnxExporterError", "OperatorExportTypes", "TrainingMode", "dynamo_export", "export", "is_in_onnx_export", "register_custom_op_symbolic"]


class OnnxExporterError(RuntimeError):
    """Never raised, because models are not exported."""


class TrainingMode(Enum):
    """The purpose for which a model is exported."""

    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(Enum):
    """The way in which operators are exported."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class ExportOptions:
    """Export options, which have no effect."""

    def __init__(self, **options):
        self.__dict__.update(options)


def export(model, args=(), f=None, **options):
    """Raises NotImplementedError, because models run as Python code and there is no graph to export."""
    raise NotImplementedError("onnx.export: models cannot be exported; save a state_dict with gradus.save or gradus.safetensors, and load it into PyTorch to export it there")


def dynamo_export(model, *args, **options):
    """Raises NotImplementedError, because models run as Python code and there is no graph to export."""
    return export(model)


def is_in_onnx_export():
    """Returns False, because models are not exported."""
    return False


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Does nothing, because operators are not exported."""


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Does nothing, because operators are not exported."""


@contextlib.contextmanager
def select_model_mode_for_export(model, mode):
    """Context manager that sets the module to the training or evaluation mode given by a TrainingMode, and restores the previous mode on exit."""
    training = model.training
    if mode is not TrainingMode.PRESERVE:
        model.train(mode is TrainingMode.TRAINING)
    try:
        yield
    finally:
        model.train(training)


__getattr__ = _stand_ins.of_module(__name__)
