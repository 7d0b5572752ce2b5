/* Implements the properties of Tensor. Every access goes through get_property or set_property, which first call the __torch_function__ of a mode or
 * of the tensor's class if there is one. */
#include "device.h"
#include "dtype.h"
#include "errors.h"
#include "gil.h"
#include "node.h"
#include "override.h"
#include "scalar.h"
#include "size.h"
#include "tables.h"
#include "gradus/ops/conj.h"
#include "gradus/ops/copy.h"
#include "gradus/ops/imag.h"
#include "gradus/ops/permute.h"
#include "gradus/ops/real.h"
#include "gradus/ops/transpose.h"

struct property {
    const char *name;
    PyObject *(*get)(PyObject *self);
    int (*set)(PyObject *self, PyObject *value); /* a `value` of NULL deletes the property */
};

/* ---- Access to a property ---------------------------------------------------------------------------------------- */

/* Passes an access to property `name` to __torch_function__, which gets a function such as Tensor.shape.__get__ as its argument `func`. `access` is
 * "__get__", "__set__" or "__delete__". */
static PyObject *hand_over(PyObject *self, const char *name, const char *access, PyObject *value)
{
    PyObject *property = py_has_stack() ? PyObject_GetAttrString((PyObject *)py_tensor_type, name) : NULL;
    PyObject *public = property != NULL ? PyObject_GetAttrString(property, access) : NULL;
    PyObject *args = public == NULL ? NULL : value != NULL ? PyTuple_Pack(2, self, value) : PyTuple_Pack(1, self);
    PyObject *kwargs = args == NULL ? NULL : PyDict_New();
    PyObject *result = kwargs == NULL ? NULL : py_call_override(name, public, &self, py_has_override(self), args, kwargs);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    Py_XDECREF(public);
    Py_XDECREF(property);
    return result;
}

static PyObject *get_property(PyObject *self, void *closure)
{
    const struct property *property = closure;
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return hand_over(self, property->name, "__get__", NULL);
    return property->get(self);
}

static int set_property(PyObject *self, PyObject *value, void *closure)
{
    const struct property *property = closure;
    if (PY_LIKELY(!py_is_overloaded(self)))
        return property->set(self, value);
    PyObject *done = hand_over(self, property->name, value != NULL ? "__set__" : "__delete__", value);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

/* Closes `scope`, in which a setter has run, and returns the result of the setter: 0, or -1 with an exception. */
static int leave(grd_scope scope)
{
    PyObject *left = py_leave(scope);
    Py_XDECREF(left);
    return left != NULL ? 0 : -1;
}

/* ---- Geometry and type ------------------------------------------------------------------------------------------- */

static PyObject *get_shape(PyObject *self)
{
    return py_size(grd_sizes(py_tensor_of(self)));
}

static PyObject *get_ndim(PyObject *self)
{
    return PyLong_FromLongLong(grd_ndim(py_tensor_of(self)));
}

static PyObject *get_dtype(PyObject *self)
{
    return py_dtype(grd_tensor_dtype(py_tensor_of(self)));
}

static PyObject *get_device(PyObject *self)
{
    return py_device(grd_tensor_device(py_tensor_of(self)));
}

static PyObject *get_layout(PyObject *self)
{
    return py_layout(grd_tensor_layout(py_tensor_of(self)));
}

static int64_t itemsize(PyObject *self)
{
    return grd_dtype_size(grd_tensor_dtype(py_tensor_of(self)));
}

static PyObject *get_itemsize(PyObject *self)
{
    return PyLong_FromLongLong(itemsize(self));
}

static PyObject *get_nbytes(PyObject *self)
{
    return PyLong_FromLongLong(grd_numel(py_tensor_of(self)) * itemsize(self));
}

/* True if the tensor is on a device of the given type. */
static bool lies_on(PyObject *self, const char *type)
{
    return strcmp(grd_device_name(grd_tensor_device(py_tensor_of(self))), type) == 0;
}

static PyObject *get_is_cpu(PyObject *self)
{
    return PyBool_FromLong(lies_on(self, "cpu"));
}

static PyObject *get_is_meta(PyObject *self)
{
    return PyBool_FromLong(lies_on(self, "meta"));
}

static PyObject *get_is_cuda(PyObject *self)
{
    return PyBool_FromLong(lies_on(self, "cuda"));
}

static PyObject *get_is_xpu(PyObject *self)
{
    return PyBool_FromLong(lies_on(self, "xpu"));
}

static PyObject *get_is_mps(PyObject *self)
{
    return PyBool_FromLong(lies_on(self, "mps"));
}

static PyObject *get_is_xla(PyObject *self)
{
    return PyBool_FromLong(lies_on(self, "xla"));
}

static PyObject *get_is_ipu(PyObject *self)
{
    return PyBool_FromLong(lies_on(self, "ipu"));
}

static PyObject *get_is_maia(PyObject *self)
{
    return PyBool_FromLong(lies_on(self, "maia"));
}

static PyObject *get_is_mtia(PyObject *self)
{
    return PyBool_FromLong(lies_on(self, "mtia"));
}

static PyObject *get_is_vulkan(PyObject *self)
{
    return PyBool_FromLong(lies_on(self, "vulkan"));
}

static PyObject *get_is_quantized(PyObject *self)
{
    return PyBool_FromLong(py_dtype_is_quantized(grd_tensor_dtype(py_tensor_of(self))));
}

/* Getter for properties such as is_sparse, which are always False because this library has no such tensors. */
static PyObject *get_false(PyObject *Py_UNUSED(self))
{
    Py_RETURN_FALSE;
}

static PyObject *get_none(PyObject *Py_UNUSED(self))
{
    Py_RETURN_NONE;
}

/* ---- Gradients --------------------------------------------------------------------------------------------------- */

static PyObject *get_requires_grad(PyObject *self)
{
    return PyBool_FromLong(grd_requires_grad(py_tensor_of(self)));
}

static int set_requires_grad(PyObject *self, PyObject *value)
{
    if (value == NULL || !PyBool_Check(value)) {
        PyErr_SetString(PyExc_RuntimeError, "requires_grad must be a bool");
        return -1;
    }
    grd_tensor *t = py_tensor_of(self);
    const bool is_leaf = grd_is_leaf(t);
    if (!grd_ok()) {
        py_raise();
        return -1;
    }
    if (value == Py_True && !is_leaf) {
        PyErr_SetString(PyExc_RuntimeError, "you can only change requires_grad flags of leaf variables.");
        return -1;
    }
    grd_set_requires_grad(t, value == Py_True);
    if (grd_ok())
        return 0;
    py_raise();
    return -1;
}

static PyObject *get_is_leaf(PyObject *self)
{
    const bool is_leaf = grd_is_leaf(py_tensor_of(self));
    return grd_ok() ? PyBool_FromLong(is_leaf) : py_raise();
}

static PyObject *get_grad(PyObject *self)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = py_tensor_of(self), *grad = grd_grad_of(t);
    if (PY_UNLIKELY(grad == NULL && grd_requires_grad(t) && !grd_is_leaf(t) && !grd_retains_grad(t)) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
                     "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
                     ".retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf "
                     "Tensor instead.",
                     1) < 0) {
        grd_scope_close(scope);
        return NULL;
    }
    return py_take(scope, grad);
}

static int set_grad(PyObject *self, PyObject *value)
{
    const bool clears = value == NULL || value == Py_None;
    if (!clears && !py_is_tensor(value)) {
        PyErr_Format(PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type %s", Py_TYPE(value)->tp_name);
        return -1;
    }
    grd_scope scope = grd_scope_open();
    grd_set_grad(py_tensor_of(self), clears ? NULL : py_tensor_of(value));
    return leave(scope);
}

static PyObject *get_grad_fn(PyObject *self)
{
    return py_node_of(py_tensor_of(self));
}

static PyObject *get_retains_grad(PyObject *self)
{
    return PyBool_FromLong(grd_retains_grad(py_tensor_of(self)));
}

static PyObject *get_output_nr(PyObject *self)
{
    grd_tensor *t = py_tensor_of(self);
    int output = 0;
    grd_scope scope = grd_scope_open();
    if (grd_grad_fn(t) != NULL)
        grd_gradient_edge(t, &output);
    PyObject *left = py_leave(scope);
    Py_XDECREF(left);
    return left != NULL ? PyLong_FromLong(output) : NULL;
}

static PyObject *get_version(PyObject *self)
{
    return PyLong_FromLongLong(grd_tensor_version(py_tensor_of(self)));
}

static PyObject *get_base(PyObject *self)
{
    return py_wrap(grd_view_base(py_tensor_of(self)));
}

/* ---- Data -------------------------------------------------------------------------------------------------------- */

static PyObject *get_data(PyObject *self)
{
    grd_scope scope = grd_scope_open();
    return py_take(scope, grd_alias(py_tensor_of(self)));
}

static int set_data(PyObject *self, PyObject *value)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!");
        return -1;
    }
    if (!py_is_tensor(value)) {
        PyErr_Format(PyExc_TypeError, "Variable data has to be a tensor, but got %s", Py_TYPE(value)->tp_name);
        return -1;
    }
    grd_scope scope = grd_scope_open();
    py_begin_change();
    grd_set_data(py_tensor_of(self), py_tensor_of(value));
    py_end_change();
    return leave(scope);
}

static PyObject *get_real(PyObject *self)
{
    grd_scope scope = grd_scope_open();
    return py_take(scope, grd_real(py_tensor_of(self)));
}

static PyObject *get_imag(PyObject *self)
{
    grd_scope scope = grd_scope_open();
    return py_take(scope, grd_imag(py_tensor_of(self)));
}

/* Setter of t.real and t.imag: writes a tensor or a number to the view part(t). `name` is the property, for errors. */
static int set_part(PyObject *self, PyObject *value, grd_tensor *(*part)(grd_tensor *), const char *name)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *source = NULL;
    grd_scalar scalar;
    int is_scalar = 0;
    if (value != NULL && py_is_tensor(value))
        source = py_tensor_of(value);
    else if (value != NULL && (is_scalar = py_as_scalar(value, &scalar)) > 0)
        source = grd_number(scalar);
    else if (is_scalar == 0)
        PyErr_Format(PyExc_TypeError, "%s must be a Tensor or a Number, not %s", name, value != NULL ? Py_TYPE(value)->tp_name : "deleted");
    if (source == NULL) {
        grd_scope_close(scope);
        return -1;
    }
    grd_copy_(part(py_tensor_of(self)), source);
    return leave(scope);
}

static int set_real(PyObject *self, PyObject *value)
{
    return set_part(self, value, grd_real, "real");
}

static int set_imag(PyObject *self, PyObject *value)
{
    return set_part(self, value, grd_imag, "imag");
}

/* ---- Transposed views -------------------------------------------------------------------------------------------- */

static grd_tensor *reversed(grd_tensor *t)
{
    int64_t dims[GRD_MAX_DIMS];
    const int64_t n = grd_ndim(t);
    for (int64_t i = 0; i < n; i++)
        dims[i] = n - 1 - i;
    return grd_permute(t, grd_dims_from(dims, n));
}

static PyObject *get_T(PyObject *self)
{
    grd_scope scope = grd_scope_open();
    return py_take(scope, reversed(py_tensor_of(self)));
}

/* Returns a view of `self` with its last two dimensions transposed. If `conjugate` is true, also conjugates. Does not transpose a 0-d tensor. */
static PyObject *transposed(PyObject *self, bool conjugate)
{
    grd_tensor *t = py_tensor_of(self);
    grd_scope scope = grd_scope_open();
    grd_tensor *result = grd_ndim(t) > 0 ? grd_transpose(t, -2, -1) : t;
    if (conjugate && grd_dtype_is_complex(grd_tensor_dtype(t)))
        result = grd_conj(result);
    return py_take(scope, result);
}

static PyObject *get_matrices(PyObject *self, const char *name, bool conjugate)
{
    if (grd_ndim(py_tensor_of(self)) == 1)
        return PyErr_Format(PyExc_RuntimeError, "tensor.%s is only supported on matrices or batches of matrices. Got 1-D tensor.", name);
    return transposed(self, conjugate);
}

static PyObject *get_mT(PyObject *self)
{
    return get_matrices(self, "mT", false);
}

static PyObject *get_mH(PyObject *self)
{
    return get_matrices(self, "mH", true);
}

static PyObject *get_H(PyObject *self)
{
    const int64_t ndim = grd_ndim(py_tensor_of(self));
    if (ndim != 2 && ndim != 0)
        return PyErr_Format(PyExc_RuntimeError, "tensor.H is only supported on matrices (2-D tensors). Got %lld-D tensor.%s",
                            (long long)ndim, ndim > 2 ? " For batches of matrices, consider using tensor.mH" : "");
    return transposed(self, true);
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

#define READ(name, get, doc)                                                                                                               \
    {                                                                                                                                      \
        (name), get_property, NULL, (doc), &(struct property)                                                                              \
        {                                                                                                                                  \
            (name), (get), NULL                                                                                                            \
        }                                                                                                                                  \
    }
#define WRITE(name, get, set, doc)                                                                                                         \
    {                                                                                                                                      \
        (name), get_property, set_property, (doc), &(struct property)                                                                      \
        {                                                                                                                                  \
            (name), (get), (set)                                                                                                           \
        }                                                                                                                                  \
    }

PyGetSetDef py_tensor_properties[] = {
    READ("shape", get_shape, "The sizes of the dimensions: a torch.Size."),
    READ("ndim", get_ndim, "The number of dimensions."),
    READ("dtype", get_dtype, "The type of the elements."),
    READ("device", get_device, "Where the elements lie."),
    READ("layout", get_layout, "How the elements are kept: torch.strided."),
    READ("itemsize", get_itemsize, "Bytes of one element."),
    READ("nbytes", get_nbytes, "Bytes of all elements: numel() * itemsize."),
    READ("is_cpu", get_is_cpu, "True if the tensor is on the CPU."),
    READ("is_meta", get_is_meta, "True if the tensor is on the meta device: it has sizes and a dtype but no data."),
    READ("is_cuda", get_is_cuda, "True if the tensor is on a device of type 'cuda'."),
    READ("is_xpu", get_is_xpu, "True if the tensor is on a device of type 'xpu'."),
    READ("is_mps", get_is_mps, "True if the tensor is on a device of type 'mps'."),
    READ("is_xla", get_is_xla, "True if the tensor is on a device of type 'xla'."),
    READ("is_ipu", get_is_ipu, "True if the tensor is on a device of type 'ipu'."),
    READ("is_maia", get_is_maia, "True if the tensor is on a device of type 'maia'."),
    READ("is_mtia", get_is_mtia, "True if the tensor is on a device of type 'mtia'."),
    READ("is_vulkan", get_is_vulkan, "True if the tensor is on a device of type 'vulkan'."),
    READ("is_quantized", get_is_quantized, "True if the dtype is a quantized dtype."),
    READ("is_sparse", get_false, "False: every tensor is strided."),
    READ("is_sparse_csr", get_false, "False: every tensor is strided."),
    READ("is_mkldnn", get_false, "False: every tensor is strided."),
    READ("is_nested", get_false, "False: every tensor is strided."),
    READ("name", get_none, "None: tensors have no names."),
    WRITE("requires_grad", get_requires_grad, set_requires_grad,
          "True if gradients are computed for the tensor. It can be set for leaves of a floating-point or complex dtype; otherwise raises "
          "RuntimeError."),
    READ("is_leaf", get_is_leaf, "True if the tensor has no grad_fn: no recorded operation computed it."),
    WRITE("grad", get_grad, set_grad,
          "The accumulated gradient, or None. Can be set to a tensor of the same sizes, dtype and device (RuntimeError otherwise), and "
          "deleted."),
    WRITE("_grad", get_grad, set_grad, "grad, by the name that optimizers and wrappers of PyTorch write."),
    READ("grad_fn", get_grad_fn, "The node of the graph that computed the tensor; None for a leaf."),
    READ("retains_grad", get_retains_grad, "True for a non-leaf tensor after retain_grad(): a backward pass stores its gradient in .grad."),
    READ("output_nr", get_output_nr, "Which of the results of grad_fn the tensor is."),
    READ("_version", get_version, "How often operators wrote to the memory."),
    READ("_base", get_base, "The tensor this one is a view of, or None."),
    WRITE("data", get_data, set_data,
          "A tensor over the same memory with neither history nor version in common: what is written to it, autograd does not see. Can be "
          "set to another "
          "tensor, whose memory, sizes and dtype it takes."),
    WRITE("real", get_real, set_real, "The view of the real parts; of a real tensor, itself. Can be set to a tensor or a number."),
    WRITE("imag", get_imag, set_imag,
          "The view of the imaginary parts. RuntimeError: the dtype is real. Can be set to a tensor or a number."),
    READ("T", get_T, "The view with the order of the dimensions reversed."),
    READ("mT", get_mT, "The view with the last two dimensions exchanged. RuntimeError: the tensor is 1-D."),
    READ("H", get_H, "The conjugate transpose of a matrix. RuntimeError unless 2-D."),
    READ("mH", get_mH, "The conjugate transpose of each matrix. RuntimeError: the tensor is 1-D."),
    {NULL, NULL, NULL, NULL, NULL},
};
