/* Checks the dtype of an out= tensor by the rule in the operator's schema entry (struct grd_out_rule). The check is made before anything is
 * written. Sizes, overlap, and whether the result can be cast are checked by the operator itself. */
#include <string.h>

#include "base/text.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "dispatch/op.h"

/* Returns the dtype name that replaces `word`, which has n characters and stands in braces in an error text. {out} and {result} become PyTorch's
 * name of the dtype of out= or of the result. {c out} and {c result} become the dtype's C++ name. */
static const char *word_in_braces(const char *word, size_t n, grd_dtype out, grd_dtype result)
{
    const bool c = n > 2 && word[1] == ' ';
    const grd_dtype dtype = word[c ? 2 : 0] == 'o' ? out : result;
    return c ? grd_dtype_c_name(dtype) : grd_dtype_type_name(dtype);
}

/* Raises RuntimeError with the text `text`. Words in braces, e.g. {out}, are replaced by names of the dtypes `out` and `result`. Always returns
 * false. */
static bool refuse(const char *text, grd_dtype out, grd_dtype result)
{
    struct grd_text message = {0};
    for (;;) {
        const char *opening = strchr(text, '{'), *closing = opening == NULL ? NULL : strchr(opening, '}');
        if (closing == NULL)
            break;
        grd_text_add(&message, "%.*s%s", (int)(opening - text), text,
                     word_in_braces(opening + 1, (size_t)(closing - opening - 1), out, result));
        text = closing + 1;
    }
    grd_text_add(&message, "%s", text);
    if (!message.failed)
        grd_raise(GRD_ERROR_RUNTIME, "%s", message.data);
    grd_text_done(&message);
    return false;
}

/* True if the rule accepts the dtype `dtype` of out= although the result has another dtype, `result`. */
static bool is_of_kind(const struct grd_out_rule *rule, grd_dtype dtype, grd_dtype result)
{
    return (rule->dtype == GRD_OUT_CASTABLE && grd_can_cast(result, dtype)) ||
           (rule->dtype == GRD_OUT_COMPLEX && grd_dtype_is_complex(dtype)) ||
           (rule->dtype == GRD_OUT_FLOATING && grd_dtype_is_floating(dtype));
}

bool grd_check_out_dtype(const struct grd_op *op, int64_t i, const grd_tensor *out, grd_dtype result)
{
    const struct grd_out_rule *rule = op->out_rule;
    if (rule == NULL || result == GRD_DTYPE_NONE || out->dtype == result || is_of_kind(rule, (grd_dtype)out->dtype, result))
        return !grd_pending();
    return refuse(rule->texts[i], out->dtype, result);
}

/* Returns the dtype that out= must have according to the rule, the inputs and the dtype argument `given`. Returns GRD_DTYPE_NONE if the dtype
 * cannot be known before the call or several dtypes are allowed. */
static grd_dtype demanded(const struct grd_out_rule *rule, grd_tensors inputs, grd_dtype given)
{
    switch ((enum grd_out_dtype)rule->dtype) {
    case GRD_OUT_RESULT:
    case GRD_OUT_COMPLEX:
    case GRD_OUT_FLOATING:
    case GRD_OUT_CASTABLE:
        return GRD_DTYPE_NONE;
    case GRD_OUT_GIVEN:
        return given;
    case GRD_OUT_SELF:
        return given != GRD_DTYPE_NONE ? given : (grd_dtype)inputs.data[0]->dtype;
    case GRD_OUT_REAL:
        return grd_dtype_to_real(given != GRD_DTYPE_NONE ? given : (grd_dtype)inputs.data[0]->dtype);
    case GRD_OUT_PROMOTED:
        return grd_result_type(inputs.data, (int)inputs.n);
    case GRD_OUT_REST:
        return grd_result_type(inputs.data + 1, (int)inputs.n - 1);
    case GRD_OUT_BOOL:
        return GRD_BOOL;
    case GRD_OUT_INT64:
        return GRD_INT64;
    }
    return GRD_DTYPE_NONE;
}

/* True if autograd will record the call. Then the caller skips the check of the dtype, because autograd has its own error for out= with inputs
 * that need gradients. */
static bool is_recorded(const struct grd_op *op, const grd_tensor *out, grd_tensors inputs)
{
    grd_keyset keys = grd_keys_of(out);
    for (int64_t i = 0; i < inputs.n; i++)
        keys |= inputs.data[i] == NULL ? 0 : grd_keys_of(inputs.data[i]);
    return op->derivative != NULL && (grd_active_keys(keys) & 1u << GRD_KEY_AUTOGRAD) != 0;
}

bool grd_check_out_call(const struct grd_op *op, const grd_tensor *out, grd_tensors inputs, grd_dtype given)
{
    if (op->out_rule == NULL)
        return true;
    /* True without a check if an argument is NULL or is the result of a failed call. The operator itself then raises the error, with a better
     * text. */
    if (grd_pending() || out == NULL || grd_is_failed(out) || inputs.n == 0 || inputs.data[0] == NULL || grd_is_failed(inputs.data[0]))
        return true;
    if (is_recorded(op, out, inputs) || grd_check_out_dtype(op, 0, out, demanded(op->out_rule, inputs, given)))
        return true;
    grd_error_add_context(op->name);
    return false;
}

bool grd_check_out_values(const struct grd_op *op, const grd_tensor *out, const grd_value *args)
{
    grd_tensor *inputs[GRD_MAX_ARGS];
    int64_t n = 0;
    grd_dtype given = GRD_DTYPE_NONE;
    for (int i = 0; i < op->nargs && op->out_rule != NULL; i++) {
        if (args[i].kind == GRD_KIND_TENSOR)
            inputs[n++] = args[i].v.tensor;
        if (args[i].kind == GRD_KIND_DTYPE)
            given = args[i].v.dtype;
    }
    return grd_check_out_call(op, out, grd_tensors_from(inputs, n), given);
}
