/* Loads all tensors of a safetensors file, as a new list or into existing tensors. */
#include <string.h>

#include "base/text.h"
#include "core/given.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "gen/uses/io/load.h"

grd_tensor *grd_named_tensor_find(grd_named_tensors tensors, const char *name)
{
    if (grd_pending())
        return grd_failed;
    for (int64_t i = 0; i < tensors.n && tensors.data != NULL && name != NULL; i++)
        if (tensors.data[i].name != NULL && strcmp(tensors.data[i].name, name) == 0)
            return tensors.data[i].tensor;
    return grd_fail(GRD_ERROR_RUNTIME, "grd_named_tensor_find: none of the %lld tensors is named '%s'", (long long)tensors.n,
                    name != NULL ? name : "NULL");
}

/* ---- A new list ------------------------------------------------------------------------------------------------------------------------------- */

/* Returns a list of the names of the tensors in a file. The tensor of each entry is grd_failed, because its data is not read yet. List and names
 * are one block of memory, which is freed with the innermost memory scope (grd_scope). Returns NULL, with MemoryError, on failure. */
static grd_named_tensor *new_list(const grd_tensor_file *file)
{
    const int64_t n = grd_tensor_file_count(file);
    size_t names = 0;
    for (int64_t i = 0; i < n; i++)
        names += strlen(grd_tensor_file_name(file, i)) + 1;
    grd_named_tensor *list = grd_pool_alloc((size_t)n * sizeof *list + names);
    if (list == NULL)
        return NULL;
    char *name = (char *)(list + n);
    for (int64_t i = 0; i < n; i++) {
        list[i] = (grd_named_tensor){.name = strcpy(name, grd_tensor_file_name(file, i)), .tensor = grd_failed};
        name += strlen(name) + 1;
    }
    return list;
}

grd_named_tensors grd_load(const char *path)
{
    grd_named_tensors result = {NULL, 0};
    grd_tensor_file *file = grd_tensor_file_open(path);
    if (file == NULL)
        return result;
    const int64_t n = grd_tensor_file_count(file);
    grd_named_tensor *list = new_list(file);
    for (int64_t i = 0; i < n && !grd_pending(); i++)
        list[i].tensor = grd_tensor_file_read(file, list[i].name);
    if (!grd_pending())
        result = (grd_named_tensors){list, n};
    grd_tensor_file_close(file);
    return result;
}

/* ---- Into existing tensors ---------------------------------------------------------------------------------------------------- */

/* True if the file has a tensor with the name, sizes and dtype of `target`. Otherwise raises an error and returns false, also if `target` has no name
 * or no tensor. `path` names the file in errors. */
static bool check_target(const grd_tensor_file *file, const char *path, const grd_named_tensor *target)
{
    char wanted[GRD_MAX_DIMS * 4], found[GRD_MAX_DIMS * 4];
    if (target->name == NULL || target->tensor == NULL)
        return grd_raise(GRD_ERROR_TYPE, "grd_load_into: a %s of argument 'tensors' is NULL", target->name == NULL ? "name" : "tensor");
    if (!grd_given(target->tensor, "grd_load_into", "tensors"))
        return false;
    const int64_t index = grd_tensor_file_find(file, target->name);
    if (index < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "cannot load '%s': it has no tensor '%s'", path, target->name);
    const grd_dims sizes = grd_tensor_file_sizes(file, index);
    const grd_dtype dtype = grd_tensor_file_dtype(file, index);
    if (!grd_dims_equal(sizes, grd_sizes(target->tensor)))
        return grd_raise(GRD_ERROR_RUNTIME, "cannot load '%s': tensor '%s' has sizes %s in the file and %s here", path, target->name,
                         grd_format_int64s(found, sizeof found, sizes.data, sizes.n),
                         grd_format_int64s(wanted, sizeof wanted, target->tensor->sizes, target->tensor->ndim));
    return dtype == target->tensor->dtype || grd_raise(GRD_ERROR_RUNTIME, "cannot load '%s': tensor '%s' is %s in the file and %s here",
                                                       path, target->name, grd_dtype_name(dtype), grd_dtype_name(target->tensor->dtype));
}

/* Reads all `targets` from the file and then copies them into the caller's tensors. If the file cannot be read, no tensor is changed. False, with
 * the error raised, on failure. */
static bool read_and_copy(const grd_tensor_file *file, grd_named_tensors targets)
{
    grd_tensor **read = grd_pool_alloc((size_t)targets.n * sizeof *read);
    for (int64_t i = 0; i < targets.n && !grd_pending(); i++)
        read[i] = grd_tensor_file_read(file, targets.data[i].name);
    for (int64_t i = 0; i < targets.n && !grd_pending(); i++)
        grd_copy_(targets.data[i].tensor, read[i]);
    return !grd_pending();
}

bool grd_load_into(const char *path, grd_named_tensors tensors)
{
    if (!grd_pending() && tensors.n != 0 && (tensors.n < 0 || tensors.data == NULL))
        return grd_raise(GRD_ERROR_TYPE, "grd_load_into: argument 'tensors' is no list: its length is %lld and its data %s",
                         (long long)tensors.n, tensors.data != NULL ? "not NULL" : "NULL");
    grd_tensor_file *file = grd_tensor_file_open(path);
    for (int64_t i = 0; i < tensors.n && !grd_pending(); i++)
        check_target(file, path, &tensors.data[i]);
    bool done = false;
    if (!grd_pending()) {
        const grd_scope scope = grd_scope_open();
        const bool grad = grd_set_grad_enabled(false);
        done = read_and_copy(file, tensors);
        grd_set_grad_enabled(grad);
        grd_scope_close(scope);
    }
    grd_tensor_file_close(file);
    return done;
}
