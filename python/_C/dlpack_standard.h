/* Defines the structs of DLPack 1.3, the standard for exchanging tensors between array libraries (https://dmlc.github.io/dlpack). */
#ifndef GRADUS_PYTHON_DLPACK_STANDARD_H
#define GRADUS_PYTHON_DLPACK_STANDARD_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 3 };

enum dlpack_device_type { DLPACK_CPU = 1, DLPACK_CUDA_HOST = 3, DLPACK_ROCM_HOST = 11 };

enum dlpack_code {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6,
    DLPACK_FLOAT8_E4M3FN = 10,
    DLPACK_FLOAT8_E5M2 = 12
};

enum dlpack_flags { DLPACK_READ_ONLY = 1, DLPACK_COPIED = 2 };

struct dlpack_version {
    uint32_t major, minor;
};

struct dlpack_device {
    int32_t type, id;
};

struct dlpack_dtype {
    uint8_t code, bits;
    uint16_t lanes;
};

struct dlpack_tensor {
    void *data;
    struct dlpack_device device;
    int32_t ndim;
    struct dlpack_dtype dtype;
    int64_t *sizes, *strides; /* strides are in elements; NULL if the tensor is contiguous */
    uint64_t byte_offset;
};

/* Struct of DLPack before 1.0. A capsule named "dltensor" points to it. The consumer calls the deleter once. */
struct dlpack_legacy {
    struct dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_legacy *self);
};

/* Struct of DLPack 1.0 and later. A capsule named "dltensor_versioned" points to it. The consumer calls the deleter once. */
struct dlpack_managed {
    struct dlpack_version version;
    void *context;
    void (*deleter)(struct dlpack_managed *self);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

/* Functions for the exchange between C extensions, which needs no capsule for each tensor. The capsule type(x).__dlpack_c_exchange_api__ points to
 * this struct. Each function returns 0, or -1 with a Python exception set. */
struct dlpack_exchange {
    struct dlpack_version version;
    struct dlpack_exchange *previous;
    int (*allocate)(struct dlpack_tensor *like, struct dlpack_managed **ret_managed, void *context,
                    void (*set_error)(void *context, const char *kind, const char *message));
    int (*managed_of_object)(void *object, struct dlpack_managed **ret_managed);
    int (*object_of_managed)(struct dlpack_managed *managed, void **ret_object);
    int (*tensor_of_object)(void *object, struct dlpack_tensor *ret_tensor); /* *ret_tensor is borrowed from `object` */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **ret_stream);
};

#endif
