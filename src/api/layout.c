/* Exports the offsets of members in tensors and nodes, for debuggers. gdb/gradus-gdb.py reads this table, so that the script also works with core
 * files and with a library without debug information. The script has the names of the members in the same order as this table; a test compares the
 * two lists. */
#include <stddef.h>
#include <stdint.h>

#include "autograd/node.h"
#include "autograd/variable.h"
#include "core/tensor.h"

extern GRD_API const uint16_t grd_debug_layout[];

const uint16_t grd_debug_layout[] = {
    offsetof(struct grd_object, type),
    offsetof(struct grd_object_type, name),
    offsetof(struct grd_tensor, keys),
    offsetof(struct grd_tensor, itemsize),
    offsetof(struct grd_tensor, dtype),
    offsetof(struct grd_tensor, device),
    offsetof(struct grd_tensor, device_index),
    offsetof(struct grd_tensor, ndim),
    offsetof(struct grd_tensor, storage),
    offsetof(struct grd_tensor, data),
    offsetof(struct grd_tensor, offset),
    offsetof(struct grd_tensor, numel),
    offsetof(struct grd_tensor, sizes),
    offsetof(struct grd_tensor, strides),
    offsetof(struct grd_tensor, base),
    offsetof(struct grd_tensor, autograd),
    offsetof(struct grd_storage, bytes),
    offsetof(struct grd_storage, version),
    offsetof(struct grd_autograd_meta, grad_fn),
    offsetof(struct grd_node, name),
    offsetof(struct grd_node, edges),
    offsetof(struct grd_node, nedges),
    offsetof(struct grd_edge, node),
    sizeof(struct grd_edge),
    GRD_KEY_AUTOGRAD,
};
