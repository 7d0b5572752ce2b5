/* Declares functions that save and load named tensors in the safetensors format, and functions that replace a file of any format completely or not at
 * all.
 *
 *     const grd_named_tensors model = grd_named_tensors({"weight", weight}, {"bias", bias});
 *     grd_save("model.safetensors", model);
 *     grd_load_into("model.safetensors", model);
 *
 * The safetensors package for Python reads and writes the same format: https://github.com/huggingface/safetensors. Reading such a file runs no
 * code. If a file breaks a rule of the format, the error is a RuntimeError that names the file, the tensor, the rule and the value. If a system
 * call fails, the error is an OSError (grd_error_system returns its errno). */
#ifndef GRADUS_IO_H
#define GRADUS_IO_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* ---- Lists of names -------------------------------------------------------------------------------------------------------------- */
typedef struct grd_named_tensor {
    const char *name; /* UTF-8 */
    grd_tensor *tensor;
} grd_named_tensor;

/* A list of named tensors that does not own its entries. In C, grd_named_tensors is another name for this type. In C++, grd_named_tensors is a
 * list that owns its entries and converts to this view when it is passed to a function. */
typedef struct grd_named_tensors_view {
    const grd_named_tensor *data;
    int64_t n;
#ifdef __cplusplus
    void operator=(struct grd_named_tensors_literal &&) = delete;
#endif
} grd_named_tensors_view;

/* A text with a name, stored in a file together with the tensors, e.g. {"format", "pt"}. Both strings are UTF-8. */
typedef struct grd_named_text {
    const char *name, *text;
} grd_named_text;

typedef struct grd_named_texts_view {
    const grd_named_text *data;
    int64_t n;
#ifdef __cplusplus
    void operator=(struct grd_named_texts_literal &&) = delete;
#endif
} grd_named_texts_view;

#ifndef __cplusplus
typedef grd_named_tensors_view grd_named_tensors;
typedef grd_named_texts_view grd_named_texts;
#endif

/* Returns the tensor called `name` from the list `tensors`. Returns grd_failed, with RuntimeError, if the list has none. */
GRD_API grd_tensor *grd_named_tensor_find(grd_named_tensors_view tensors, const char *name);

/* ---- Saving ------------------------------------------------------------------------------------------------------------------------ */
/* Writes the tensors to a safetensors file. An existing file at `path` is replaced only when the new one is completely on disk, so a failure or a
 * killed process leaves the old file. Tensors on other devices are copied to the CPU. Elements are written in row-major order. Tensors that share
 * memory are each written completely. If `path` is a symbolic link, its target is replaced. An existing file's permissions are kept; a new file's
 * permissions follow the umask. Returns false on failure. The error is TypeError if a name or tensor is NULL, and OSError if a system call fails.
 * It is RuntimeError if a name occurs twice, is "__metadata__" or is not UTF-8; if the format does not have the dtype (complex32, complex128,
 * quantized dtypes); or if a tensor has no data (meta device). */
GRD_API bool grd_save(const char *path, grd_named_tensors_view tensors);
/* Saves the tensors as grd_save does, together with the texts in `metadata`. No two of these texts may have the same name. */
GRD_API bool grd_save_with_metadata(const char *path, grd_named_tensors_view tensors, grd_named_texts_view metadata);
/* Returns the bytes that grd_save_with_metadata would write, as a one-dimensional uint8 tensor. */
GRD_API grd_tensor *grd_save_to_tensor(grd_named_tensors_view tensors, grd_named_texts_view metadata);

/* ---- Loading ------------------------------------------------------------------------------------------------------------------------ */
/* Returns all tensors of a safetensors file, in the order of their names, on the CPU and each with memory of its own. The innermost open scope
 * owns the tensors, the list and the names in it. Returns an empty list on failure. */
GRD_API grd_named_tensors_view grd_load(const char *path);
/* Copies tensors of a file into the listed tensors with the same names: the tensor with the name "weight" in the list gets the elements of the
 * file's tensor "weight". Autograd does not record the copies. Other tensors of the file are not read. If a name is missing in the file, or sizes
 * or dtypes differ, returns false, with RuntimeError, and writes to no tensor. */
GRD_API bool grd_load_into(const char *path, grd_named_tensors_view tensors);

/* ---- One tensor at a time -------------------------------------------------------------------------------------------------------------- */
/* An open safetensors file whose header has been checked: the data of every tensor is inside the file, and no two tensors overlap.
 *
 *     grd_tensor_file *file = grd_tensor_file_open("model.safetensors");
 *     grd_tensor *weight = grd_keep(grd_tensor_file_read(file, "weight"));
 *     grd_tensor_file_close(file);
 *
 * grd_tensor_file_open returns NULL on failure. The other functions accept this NULL and do nothing while the error is pending. Several threads
 * may read from one file. */
typedef struct grd_tensor_file grd_tensor_file;

/* Opens the safetensors file at `path`. Returns NULL, with an error, on failure. */
GRD_API grd_tensor_file *grd_tensor_file_open(const char *path);
/* Opens a safetensors file whose `size` bytes are in memory at `data`. The bytes must not change or be freed before grd_tensor_file_close.
 * Returns NULL, with an error, on failure. */
GRD_API grd_tensor_file *grd_tensor_file_over(const void *data, size_t size);
GRD_API void grd_tensor_file_close(grd_tensor_file *file); /* NULL is allowed */

/* Returns a new tensor with the elements of the file's tensor called `name`. Raises RuntimeError if the file has no such tensor, or if the file has
 * become shorter since it was opened. */
GRD_API grd_tensor *grd_tensor_file_read(const grd_tensor_file *file, const char *name);

/* Returns the number of tensors in the file. The functions grd_tensor_file_name, _dtype, _sizes and _offset return a property of tensor number
 * `index`. The tensors are numbered from 0 in the order of their names. If there is no tensor number `index`, the functions raise IndexError and
 * return NULL, GRD_DTYPE_NONE, an empty list or -1. The returned strings and sizes are valid while the file is open. */
GRD_API int64_t grd_tensor_file_count(const grd_tensor_file *file);
GRD_API const char *grd_tensor_file_name(const grd_tensor_file *file, int64_t index);
GRD_API grd_dtype grd_tensor_file_dtype(const grd_tensor_file *file, int64_t index);
GRD_API grd_dims_view grd_tensor_file_sizes(const grd_tensor_file *file, int64_t index);
/* Returns where the data of tensor number `index` is: the number of bytes between the end of the header and the start of the data. */
GRD_API int64_t grd_tensor_file_offset(const grd_tensor_file *file, int64_t index);
/* Returns the number of the tensor called `name`; -1, without an error, if there is none. */
GRD_API int64_t grd_tensor_file_find(const grd_tensor_file *file, const char *name);
/* Returns the texts that are stored in the file together with the tensors, in the order of their names. */
GRD_API grd_named_texts_view grd_tensor_file_metadata(const grd_tensor_file *file);

/* ---- Replacing a file of any format ---------------------------------------------------------------------------------------------------- */
/* A new file that replaces an existing file when the new one is complete, and not before.
 *
 *     grd_replacement *file = grd_replacement_open("checkpoint.bin");
 *     grd_replacement_write(file, bytes, size);
 *     grd_replacement_commit(file);
 *
 * If the file system supports O_TMPFILE, the new file has no name until it is complete, so a killed process leaves nothing behind. Otherwise the
 * new file is called .NAME.XXXXXXXXXXXXXXXX.saving, and the next replacement of the same file removes what a killed process has left. */
typedef struct grd_replacement grd_replacement;

/* Begins to replace the file at `path`. Returns NULL, with OSError, if the folder does not exist, if `path` is a folder, or if the existing file
 * may not be written. If `path` is a device or a pipe, it is written to directly. */
GRD_API grd_replacement *grd_replacement_open(const char *path);
/* Returns the file descriptor of the new file, so that it can be written by other means. grd_replacement_commit and grd_replacement_abandon close
 * the descriptor. */
GRD_API int grd_replacement_descriptor(const grd_replacement *file);
/* Appends `size` bytes at `data` to the new file. On failure returns false, with OSError, and grd_replacement_commit will abandon the file. */
GRD_API bool grd_replacement_write(grd_replacement *file, const void *data, size_t size);
/* Writes the new file to disk and puts it in the place of the old one. Always frees `file`. Returns false if an error occurs or was already
 * pending. The old file is then unchanged, with one exception: if only writing the folder to disk has failed, the new file is already in place. */
GRD_API bool grd_replacement_commit(grd_replacement *file);
/* Frees `file` and leaves the old file unchanged. NULL is allowed. */
GRD_API void grd_replacement_abandon(grd_replacement *file);

GRD_END_DECLS

/* grd_named_tensors({"weight", weight}, {"bias", bias}) and grd_named_texts({"format", "pt"}) make lists of at least one entry. In C the entries
 * live as long as the enclosing block of code. */
#ifdef __cplusplus
struct grd_named_tensors_literal : grd_list_literal<grd_named_tensor, grd_named_tensors_view> {
    using grd_list_literal::grd_list_literal;
};
struct grd_named_texts_literal : grd_list_literal<grd_named_text, grd_named_texts_view> {
    using grd_list_literal::grd_list_literal;
};
typedef grd_list<grd_named_tensor, grd_named_tensors_view, grd_named_tensors_literal> grd_named_tensors;
typedef grd_list<grd_named_text, grd_named_texts_view, grd_named_texts_literal> grd_named_texts;
#define grd_named_tensors(...) grd_named_tensors_literal(std::initializer_list<grd_named_tensor>{__VA_ARGS__})
#define grd_named_texts(...) grd_named_texts_literal(std::initializer_list<grd_named_text>{__VA_ARGS__})
#else
#define grd_named_tensors(...)                                                                                                             \
    ((grd_named_tensors){(const grd_named_tensor[]){__VA_ARGS__},                                                                          \
                         (int64_t)(sizeof((const grd_named_tensor[]){__VA_ARGS__}) / sizeof(grd_named_tensor))})
#define grd_named_texts(...)                                                                                                               \
    ((grd_named_texts){(const grd_named_text[]){__VA_ARGS__},                                                                              \
                       (int64_t)(sizeof((const grd_named_text[]){__VA_ARGS__}) / sizeof(grd_named_text))})
#endif

#endif
