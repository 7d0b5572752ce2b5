"""Lists the functions and methods that support masked tensors, grouped by what they do with the mask."""
__all__ = ["ADDING", "BINARY", "CONVERSIONS", "JOINING", "RAW", "REARRANGING", "UNARY"]

# Elementwise functions of one tensor. The result has the mask of the argument.
UNARY = """
abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp
exp2 expm1 fix float_power floor frac i0 isfinite isnan isreal lgamma log log10 log1p log2 logit nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sgn sigmoid sign
signbit sin sinc sinh sqrt square tan tanh trunc
""".split()

# Elementwise functions of two tensors with equal masks, or of a tensor and a number.
BINARY = """
add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor div divide eq floor_divide fmax fmin fmod ge greater greater_equal gt isclose le less
less_equal logaddexp logaddexp2 lt maximum minimum mul multiply ne nextafter not_equal remainder sub subtract true_divide
""".split()

# Functions that move elements. The mask of the result is the mask moved in the same way.
REARRANGING = """
broadcast_to chunk diagonal expand flatten flip fold hsplit index_select movedim moveaxis narrow permute ravel reshape select split split_with_sizes squeeze swapaxes swapdims t tensor_split
transpose unbind unflatten unfold unsqueeze view vsplit dsplit atleast_1d atleast_2d atleast_3d
""".split()

# Functions that join tensors. The masks are joined in the same way.
JOINING = "cat column_stack concat concatenate dstack hstack row_stack stack vstack".split()

# Conversions of dtype or device, and copies. The result has the mask of the argument.
CONVERSIONS = "bool char clone contiguous cpu cuda detach double float half int long ones_like short bfloat16 byte to type type_as".split()

# Functions whose result does not depend on the mask.
RAW = """
_is_view backward data_ptr detach_ element_size is_complex is_contiguous is_floating_point is_inference is_same_size is_signed ndimension numel requires_grad_ retain_grad size
storage_offset stride
""".split()

# Functions listed in REARRANGING that may add elements up. Bool masks cannot be added up, so these functions get masks of float32.
ADDING = frozenset({"fold", "unfold"})
