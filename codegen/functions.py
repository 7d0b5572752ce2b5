"""Finds the C functions, besides operators, that formulas may call, by reading the prototypes in the library's headers."""
import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ("include/gradus/tensor.h", "include/gradus/types.h", "src/base/integer.h", "src/kernel/table.h", "src/core/dtype.h", "src/core/iter.h", "src/core/new.h",
           "src/core/scalar.h", "src/core/shape.h", "src/core/tensor.h", "src/op/checks.h", "src/op/composite.h", "src/op/copy.h", "src/op/dtypes.h", "src/op/out.h", "src/op/sizes.h",
           "src/op/formula.h", "src/op/index_loops.h", "src/op/lines.h", "src/transform/formula.h")
PROTOTYPE = re.compile(r"^(?:GRD_API |static inline |GRD_INLINE )?(?:const )?([\w ]+?[ *])grd_(\w+)\(([^()]*)\)", re.M)
# C type without const -> name of this type in formulas. Scalar& is the type of a parameter grd_scalar *, which the function may change.
TYPES = {"grd_tensor *": "Tensor", "grd_tensors": "Tensor[]", "grd_dims": "dims", "grd_scalar": "Scalar", "grd_scalar *": "Scalar&", "int64_t": "int", "double": "float", "bool": "bool",
         "grd_dtype": "dtype", "grd_device": "device", "char *": "str"}


def type_of(declared):
    """Returns the name that the type of a C declaration, such as 'const grd_tensor *t' or 'grd_tensor *', has in formulas (TYPES). Returns None if
    formulas have no such type."""
    return TYPES.get(re.sub(r"\bconst |(?<=\*)\w+$|(?<=\w) \w+$", "", declared.strip()).strip())


def read():
    """Returns {name: (argument types, result type)} for the C functions in HEADERS. Leaves out functions with a type that formulas do not have."""
    found = {}
    for header in HEADERS:
        for result, name, parameters in PROTOTYPE.findall((ROOT / header).read_text()):
            types = tuple(type_of(p) for p in parameters.split(","))
            if type_of(result) and None not in types:
                found[name] = (types, type_of(result))
    return found


def called(formulas):
    """Returns the names of the functions in FUNCTIONS that the given formulas call."""
    nodes = (node for formula in formulas for node in ast.walk(ast.parse(formula.strip())))
    return {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)} & FUNCTIONS.keys()


FUNCTIONS = read()
