/* Prints as text what the talk "PyTorch internals" shows in its pictures of strides. A 2x2 tensor, its rows and its columns share one storage and
 * differ only in sizes, strides and offset. */
#include <stdio.h>

#include <gradus/gradus.h>

static void print_dims(const char *name, grd_dims dims)
{
    printf("  %-8s[", name);
    for (int64_t i = 0; i < dims.n; i++)
        printf("%s%lld", i ? ", " : "", (long long)dims.data[i]);
    printf("]\n");
}

/* Sets touched[c] to true for each cell c of the storage that holds an element of the tensor. The function calls itself for each index of
 * dimension `dim`. The indices of the dimensions before `dim` are already chosen. `cell` is the cell of the element with these indices and with index
 * 0 in the other dimensions. */
static void mark_cells(grd_tensor *t, int64_t dim, int64_t cell, bool *touched)
{
    if (dim == grd_ndim(t)) {
        touched[cell] = true;
        return;
    }
    for (int64_t i = 0; i < grd_size(t, dim); i++)
        mark_cells(t, dim + 1, cell + i * grd_stride(t, dim), touched);
}

static void picture(const char *title, grd_tensor *t)
{
    bool touched[64] = {false};
    const int64_t cells = grd_storage_bytes(t) / grd_dtype_size(grd_tensor_dtype(t));
    const float *const first = (const float *)grd_data(t) - grd_offset(t);
    mark_cells(t, 0, grd_offset(t), touched);
    printf("%s\n", title);
    print_dims("sizes", grd_sizes(t));
    print_dims("strides", grd_strides(t));
    printf("  offset  %lld\n  storage ", (long long)grd_offset(t));
    for (int64_t i = 0; i < cells; i++)
        printf(touched[i] ? "[%g]" : " %g ", (double)first[i]);
    printf("\n\n");
}

int main(void)
{
    const float values[] = {1, 2, 3, 4};
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_from_data(values, grd_dims(2, 2), GRD_FLOAT32);

    picture("t: element (i, j) lies at offset + 2 i + j", t);
    picture("t[1]: the second row begins two cells on", grd_select(t, 0, 1));
    picture("t[:, 0]: the first column skips every other cell", grd_select(t, 1, 0));
    picture("t.t(): the strides change places", grd_t(t));
    picture("t[:, ::-1]: a stride may be negative", grd_slice(t, .dim = 1, .step = -1));
    picture("t[0].expand(3, 2): a stride of zero repeats", grd_expand(grd_select(t, 0, 0), grd_dims(3, 2)));

    const bool ok = grd_ok();
    if (!ok)
        fprintf(stderr, "error: %s\n", grd_error_message());
    grd_scope_close(scope);
    return ok ? 0 : 1;
}
