/* Implements Python's arithmetic and comparison operators for tensors: x + y, 2 ** x, x < y, x += y.
 *
 * Calls with two Tensors, or with a Tensor and a number, do not go through the argument parser. If an operand is neither a tensor nor a number, the
 * result is NotImplemented, so that Python asks the other operand's class. If the class of an operand has a __torch_function__, that function gets
 * the method that PyTorch passes for the operator. */
#include "call.h"
#include "errors.h"
#include "override.h"
#include "scalar.h"
#include "tensor_slots.h"
#include "gradus/ops/abs.h"
#include "gradus/ops/add.h"
#include "gradus/ops/bitwise_and.h"
#include "gradus/ops/bitwise_left_shift.h"
#include "gradus/ops/bitwise_not.h"
#include "gradus/ops/bitwise_or.h"
#include "gradus/ops/bitwise_right_shift.h"
#include "gradus/ops/bitwise_xor.h"
#include "gradus/ops/div.h"
#include "gradus/ops/eq.h"
#include "gradus/ops/floor_divide.h"
#include "gradus/ops/ge.h"
#include "gradus/ops/gt.h"
#include "gradus/ops/le.h"
#include "gradus/ops/lt.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/mul.h"
#include "gradus/ops/ne.h"
#include "gradus/ops/neg.h"
#include "gradus/ops/pow.h"
#include "gradus/ops/reciprocal.h"
#include "gradus/ops/remainder.h"
#include "gradus/ops/rsub.h"
#include "gradus/ops/sub.h"

struct operation {
    const char *forward, *reversed, *named_inplace; /* names of the Tensor methods that are passed to __torch_function__, as in PyTorch */
    grd_tensor *(*call)(grd_tensor *a, grd_tensor *b);
    grd_tensor *(*inplace)(grd_tensor *self, grd_tensor *other); /* NULL if there is no in-place operator */
    bool tensors;                                                /* true if both operands must be tensors, as for @ */
};

/* ---- Operands ---------------------------------------------------------------------------------------------------- */

enum operand { OPERAND_UNKNOWN, OPERAND_OVERLOADED, OPERAND_KNOWN, OPERAND_ERROR };

/* If `object` is a Python or NumPy number, sets *ret_tensor to a 0-d tensor with its value, which the innermost open scope owns. For any other object
 * returns OPERAND_UNKNOWN without an exception. */
static enum operand number_operand(PyObject *object, grd_tensor **ret_tensor)
{
    grd_scalar scalar;
    if (PyFloat_CheckExact(object))
        scalar = grd_float(PyFloat_AS_DOUBLE(object));
    else {
        int known = py_as_scalar(object, &scalar);
        if (known <= 0)
            return known < 0 ? OPERAND_ERROR : OPERAND_UNKNOWN;
    }
    *ret_tensor = grd_number(scalar);
    return OPERAND_KNOWN;
}

/* Sets *ret_tensor to the tensor of `object`. If `object` is a number and `tensors` is false, sets *ret_tensor to a new 0-d tensor with this value,
 * which the innermost open scope owns. Returns OPERAND_OVERLOADED if a __torch_function__ takes over the call, and OPERAND_UNKNOWN for any other
 * object, both without an exception. */
static inline enum operand operand(PyObject *object, bool tensors, grd_tensor **ret_tensor)
{
    if (PY_LIKELY(py_is_exact_no_mode(object))) {
        *ret_tensor = py_tensor_of(object);
        return OPERAND_KNOWN;
    }
    if (!tensors && (PyFloat_CheckExact(object) || PyLong_CheckExact(object)))
        return number_operand(object, ret_tensor);
    if (py_is_overloaded(object))
        return OPERAND_OVERLOADED;
    if (py_is_tensor(object)) {
        *ret_tensor = py_tensor_of(object);
        return OPERAND_KNOWN;
    }
    return tensors ? OPERAND_UNKNOWN : number_operand(object, ret_tensor);
}

/* Calls __torch_function__ with the Tensor method that PyTorch passes for the operator, e.g. sub, or __rsub__ if only the right operand is a
 * tensor. */
static PyObject *overloaded(const struct operation *operation, PyObject *a, PyObject *b)
{
    return py_is_tensor(a) ? py_override(a, operation->forward, &b, 1, NULL) : py_override(b, operation->reversed, &a, 1, NULL);
}

/* Computes a binary operator of `a` and `b`, at least one of which is a tensor. Returns NotImplemented if an operand is not supported. */
static PyObject *binary(const struct operation *operation, PyObject *a, PyObject *b)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *x = NULL, *y = NULL;
    enum operand first = operand(a, operation->tensors, &x);
    enum operand second = first == OPERAND_UNKNOWN || first == OPERAND_ERROR ? first : operand(b, operation->tensors, &y);
    if (PY_LIKELY(first == OPERAND_KNOWN && second == OPERAND_KNOWN)) {
        grd_tensor *result = py_call_binary(operation->call, x, y);
        return py_take(scope, result);
    }
    grd_scope_close(scope);
    if (first == OPERAND_ERROR || second == OPERAND_ERROR)
        return NULL;
    if (first == OPERAND_UNKNOWN || second == OPERAND_UNKNOWN)
        Py_RETURN_NOTIMPLEMENTED;
    return overloaded(operation, a, b);
}

/* Computes self OP= other and returns `self`. */
static PyObject *inplace(const struct operation *operation, PyObject *self, PyObject *other)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *x = NULL, *y = NULL;
    enum operand first = operand(self, true, &x), second = operand(other, operation->tensors, &y);
    if (PY_LIKELY(first == OPERAND_KNOWN && second == OPERAND_KNOWN)) {
        py_call_binary(operation->inplace, x, y);
        grd_scope_close(scope);
        return grd_ok() ? Py_NewRef(self) : py_raise();
    }
    grd_scope_close(scope);
    if (second == OPERAND_ERROR)
        return NULL;
    if (first == OPERAND_UNKNOWN || second == OPERAND_UNKNOWN)
        Py_RETURN_NOTIMPLEMENTED;
    return py_override(self, operation->named_inplace, &other, 1, NULL);
}

static PyObject *unary(const char *name, grd_tensor *(*call)(grd_tensor *), PyObject *self)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, name, NULL, 0, NULL);
    grd_scope scope = grd_scope_open();
    grd_tensor *result = py_call_unary(call, py_tensor_of(self));
    return py_take(scope, result);
}

/* ---- Operators that have options, called without them ------------------------------------------------------------ */

static grd_tensor *add(grd_tensor *a, grd_tensor *b)
{
    return grd_add(a, b);
}

static grd_tensor *add_(grd_tensor *self, grd_tensor *other)
{
    return grd_add_(self, other);
}

static grd_tensor *sub(grd_tensor *a, grd_tensor *b)
{
    return grd_sub(a, b);
}

static grd_tensor *sub_from(grd_tensor *self, grd_tensor *other)
{
    return grd_rsub(self, other);
}

static grd_tensor *sub_(grd_tensor *self, grd_tensor *other)
{
    return grd_sub_(self, other);
}

static grd_tensor *divide(grd_tensor *a, grd_tensor *b)
{
    return grd_div(a, b);
}

static grd_tensor *divide_(grd_tensor *self, grd_tensor *other)
{
    return grd_div_(self, other);
}

static const struct operation adding = {"add", "add", "add_", add, add_, false},
                              subtracting = {"sub", "__rsub__", "sub_", sub, sub_, false},
                              subtracting_from = {NULL, NULL, NULL, sub_from, NULL, false},
                              multiplying = {"mul", "mul", "mul_", grd_mul, grd_mul_, false},
                              dividing = {"div", "__rtruediv__", "div_", divide, divide_, false},
                              floor_dividing = {"__floordiv__",   "__rfloordiv__",   "floor_divide_",
                                                grd_floor_divide, grd_floor_divide_, false},
                              remaindering = {"remainder", "__rmod__", "remainder_", grd_remainder, grd_remainder_, false},
                              powering = {"pow", "__rpow__", "pow_", grd_pow, grd_pow_, false},
                              multiplying_matrices = {"matmul", "__rmatmul__", NULL, grd_matmul, NULL, true},
                              anding = {"__and__", "bitwise_and", "__iand__", grd_bitwise_and, grd_bitwise_and_, false},
                              oring = {"__or__", "bitwise_or", "__ior__", grd_bitwise_or, grd_bitwise_or_, false},
                              xoring = {"__xor__", "bitwise_xor", "__ixor__", grd_bitwise_xor, grd_bitwise_xor_, false},
                              shifting_left = {"__lshift__",           "__rlshift__",           "__ilshift__",
                                               grd_bitwise_left_shift, grd_bitwise_left_shift_, false},
                              shifting_right = {
                                  "__rshift__", "__rrshift__", "__irshift__", grd_bitwise_right_shift, grd_bitwise_right_shift_, false};

/* ---- Slots ------------------------------------------------------------------------------------------------------- */

PyObject *py_number_add(PyObject *a, PyObject *b)
{
    return binary(&adding, a, b);
}

/* True if the operands of a call keep their order, because `a` is a tensor or a __torch_function__ takes over the call. If false, `a` is a number,
 * and the caller exchanges the operands, as rsub does. */
static bool is_forward(PyObject *a, PyObject *b)
{
    return PY_LIKELY(py_is_tensor(a)) || py_is_overloaded(a) || py_is_overloaded(b);
}

PyObject *py_number_subtract(PyObject *a, PyObject *b)
{
    return is_forward(a, b) ? binary(&subtracting, a, b) : binary(&subtracting_from, b, a);
}

PyObject *py_number_multiply(PyObject *a, PyObject *b)
{
    return binary(&multiplying, a, b);
}

/* Computes number / tensor as reciprocal(tensor) * number, as PyTorch does, so that the result equals PyTorch's bit for bit. */
PyObject *py_number_true_divide(PyObject *a, PyObject *b)
{
    if (is_forward(a, b))
        return binary(&dividing, a, b);
    PyObject *reciprocal = unary("reciprocal", grd_reciprocal, b);
    PyObject *result = reciprocal == NULL ? NULL : binary(&multiplying, reciprocal, a);
    Py_XDECREF(reciprocal);
    return result;
}

PyObject *py_number_floor_divide(PyObject *a, PyObject *b)
{
    return binary(&floor_dividing, a, b);
}

PyObject *py_number_remainder(PyObject *a, PyObject *b)
{
    return binary(&remaindering, a, b);
}

static bool refuse_modulus(PyObject *modulus)
{
    if (modulus == Py_None)
        return false;
    PyErr_SetString(PyExc_TypeError, "pow(): a modulus is not supported for tensors");
    return true;
}

PyObject *py_number_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    return refuse_modulus(modulus) ? NULL : binary(&powering, a, b);
}

PyObject *py_number_matmul(PyObject *a, PyObject *b)
{
    return binary(&multiplying_matrices, a, b);
}

PyObject *py_number_and(PyObject *a, PyObject *b)
{
    return binary(&anding, a, b);
}

PyObject *py_number_or(PyObject *a, PyObject *b)
{
    return binary(&oring, a, b);
}

PyObject *py_number_xor(PyObject *a, PyObject *b)
{
    return binary(&xoring, a, b);
}

PyObject *py_number_lshift(PyObject *a, PyObject *b)
{
    return binary(&shifting_left, a, b);
}

PyObject *py_number_rshift(PyObject *a, PyObject *b)
{
    return binary(&shifting_right, a, b);
}

PyObject *py_number_negative(PyObject *self)
{
    return unary("neg", grd_neg, self);
}

PyObject *py_number_positive(PyObject *self)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "positive", NULL, 0, NULL);
    return Py_NewRef(self);
}

PyObject *py_number_absolute(PyObject *self)
{
    return unary("abs", grd_abs, self);
}

PyObject *py_number_invert(PyObject *self)
{
    const grd_dtype dtype = grd_tensor_dtype(py_tensor_of(self));
    if (PY_LIKELY(!py_is_overloaded(self)) && PY_UNLIKELY(grd_dtype_is_floating(dtype) || grd_dtype_is_complex(dtype)))
        return PyErr_Format(PyExc_TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return unary("__invert__", grd_bitwise_not, self);
}

PyObject *py_number_inplace_add(PyObject *self, PyObject *other)
{
    return inplace(&adding, self, other);
}

PyObject *py_number_inplace_subtract(PyObject *self, PyObject *other)
{
    return inplace(&subtracting, self, other);
}

PyObject *py_number_inplace_multiply(PyObject *self, PyObject *other)
{
    return inplace(&multiplying, self, other);
}

PyObject *py_number_inplace_true_divide(PyObject *self, PyObject *other)
{
    return inplace(&dividing, self, other);
}

PyObject *py_number_inplace_floor_divide(PyObject *self, PyObject *other)
{
    return inplace(&floor_dividing, self, other);
}

PyObject *py_number_inplace_remainder(PyObject *self, PyObject *other)
{
    return inplace(&remaindering, self, other);
}

PyObject *py_number_inplace_power(PyObject *self, PyObject *other, PyObject *modulus)
{
    return refuse_modulus(modulus) ? NULL : inplace(&powering, self, other);
}

PyObject *py_number_inplace_and(PyObject *self, PyObject *other)
{
    return inplace(&anding, self, other);
}

PyObject *py_number_inplace_or(PyObject *self, PyObject *other)
{
    return inplace(&oring, self, other);
}

PyObject *py_number_inplace_xor(PyObject *self, PyObject *other)
{
    return inplace(&xoring, self, other);
}

PyObject *py_number_inplace_lshift(PyObject *self, PyObject *other)
{
    return inplace(&shifting_left, self, other);
}

PyObject *py_number_inplace_rshift(PyObject *self, PyObject *other)
{
    return inplace(&shifting_right, self, other);
}

PyObject *py_tensor_compare(PyObject *a, PyObject *b, int operation)
{
    static const struct operation comparisons[] = {
        [Py_LT] = {"lt", "gt", NULL, grd_lt, NULL, false},         [Py_LE] = {"le", "ge", NULL, grd_le, NULL, false},
        [Py_EQ] = {"__eq__", "__eq__", NULL, grd_eq, NULL, false}, [Py_NE] = {"ne", "ne", NULL, grd_ne, NULL, false},
        [Py_GT] = {"gt", "lt", NULL, grd_gt, NULL, false},         [Py_GE] = {"ge", "le", NULL, grd_ge, NULL, false},
    };
    return binary(&comparisons[operation], a, b);
}
