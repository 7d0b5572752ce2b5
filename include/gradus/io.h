/* Files: named tensors in the safetensors format, and files that replace others whole or not at all.
 *
 *     const grd_named_tensors model = grd_named_tensors({"weight", weight}, {"bias", bias});
 *     grd_save("model.safetensors", model);
 *     grd_load_into("model.safetensors", model);
 *
 * The safetensors package of Python reads and writes the same files: https://github.com/huggingface/safetensors. Reading one runs no code. A file
 * that breaks a rule of the format is a RuntimeError that names the file, the tensor, the rule and the value; what the system refuses is an OSError
 * (grd_error_system tells its errno). */
#ifndef GRADUS_IO_H
#define GRADUS_IO_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* ---- Lists of names -------------------------------------------------------------------------------------------------------------- */
typedef struct grd_named_tensor {
    const char *name; /* UTF-8 */
    grd_tensor *tensor;
} grd_named_tensor;

/* A list of them that somebody else owns. In C++ grd_named_tensors is a list with entries of its own, which converts to a view for a call, as
 * grd_dims does. */
typedef struct grd_named_tensors_view {
    const grd_named_tensor *data;
    int64_t n;
#ifdef __cplusplus
    void operator=(struct grd_named_tensors_literal &&) = delete;
#endif
} grd_named_tensors_view;

/* Text beside the tensors of a file, e.g. {"format", "pt"}. Both are UTF-8. */
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

/* The tensor of that name. grd_failed, with RuntimeError, when the list has none. */
GRD_API grd_tensor *grd_named_tensor_find(grd_named_tensors_view tensors, const char *name);

/* ---- Saving ------------------------------------------------------------------------------------------------------------------------ */
/* Writes the tensors to a safetensors file, which takes the place of the one at `path` when all of it is on disk: a failure or a killed process
 * leaves the old file. Tensors on other devices are copied to the cpu, non-contiguous ones are packed; tensors that share memory are written
 * several times. A symbolic link at `path` stays and its target is replaced; permissions stay, those of a new file follow the umask.
 * False, with the error set: TypeError when a name or tensor is NULL; RuntimeError when a name occurs twice, is "__metadata__" or not UTF-8, when the
 * format does not have the dtype (complex32, complex128 and quantized ones), or a tensor has no data (meta); OSError when the system refuses. */
GRD_API bool grd_save(const char *path, grd_named_tensors_view tensors);
/* Saves the tensors as grd_save does, with texts beside them, whose names differ. */
GRD_API bool grd_save_with_metadata(const char *path, grd_named_tensors_view tensors, grd_named_texts_view metadata);
/* The bytes of such a file as a one-dimensional uint8 tensor. */
GRD_API grd_tensor *grd_save_to_tensor(grd_named_tensors_view tensors, grd_named_texts_view metadata);

/* ---- Loading ------------------------------------------------------------------------------------------------------------------------ */
/* All tensors of a safetensors file, in the order of their names, on the cpu and with memory of their own. The list and its names belong to the
 * innermost open scope, as the tensors do. Empty on failure. */
GRD_API grd_named_tensors_view grd_load(const char *path);
/* Copies the tensors of a file into those listed, by name, outside autograd: { "weight", weight } gets what the file calls "weight". Other tensors
 * of the file are not read. Nothing is written unless all of it succeeds: RuntimeError when a name is missing in the file, or sizes or dtypes
 * differ. */
GRD_API bool grd_load_into(const char *path, grd_named_tensors_view tensors);

/* ---- One tensor at a time -------------------------------------------------------------------------------------------------------------- */
/* An open safetensors file, whose header has been checked: every tensor it names lies in the file, and no two overlap.
 *
 *     grd_tensor_file *file = grd_tensor_file_open("model.safetensors");
 *     grd_tensor *weight = grd_keep(grd_tensor_file_read(file, "weight"));
 *     grd_tensor_file_close(file);
 *
 * While the error of a failed open is pending, the functions below take its NULL and return nothing. Several threads may read from one file. */
typedef struct grd_tensor_file grd_tensor_file;

/* NULL, with the error set, on failure. */
GRD_API grd_tensor_file *grd_tensor_file_open(const char *path);
/* The file's bytes in memory, which must not change or go before grd_tensor_file_close. */
GRD_API grd_tensor_file *grd_tensor_file_over(const void *data, size_t size);
GRD_API void grd_tensor_file_close(grd_tensor_file *file); /* NULL is allowed */

/* A new tensor with the elements of that name. RuntimeError when the file has none of that name, or has become shorter since it was opened. */
GRD_API grd_tensor *grd_tensor_file_read(const grd_tensor_file *file, const char *name);

/* Tensors are numbered in the order of their names. IndexError and nothing (NULL, GRD_DTYPE_NONE, no sizes, -1) for other numbers. What is returned
 * lives as long as the file is open. */
GRD_API int64_t grd_tensor_file_count(const grd_tensor_file *file);
GRD_API const char *grd_tensor_file_name(const grd_tensor_file *file, int64_t index);
GRD_API grd_dtype grd_tensor_file_dtype(const grd_tensor_file *file, int64_t index);
GRD_API grd_dims_view grd_tensor_file_sizes(const grd_tensor_file *file, int64_t index);
/* Bytes between the end of the header and the tensor. */
GRD_API int64_t grd_tensor_file_offset(const grd_tensor_file *file, int64_t index);
/* The number of the tensor of that name; -1, with no error, when there is none. */
GRD_API int64_t grd_tensor_file_find(const grd_tensor_file *file, const char *name);
/* The texts beside the tensors, in the order of their names. */
GRD_API grd_named_texts_view grd_tensor_file_metadata(const grd_tensor_file *file);

/* ---- Replacing a file of any format ---------------------------------------------------------------------------------------------------- */
/* A new file that takes the place of another one when it is complete, and not before.
 *
 *     grd_replacement *file = grd_replacement_open("checkpoint.bin");
 *     grd_replacement_write(file, bytes, size);
 *     grd_replacement_commit(file);
 *
 * Where the file system can (O_TMPFILE), the new file has no name until it is complete, so that nothing is left of a process that is killed.
 * Elsewhere it is called .NAME.XXXXXXXXXXXXXXXX.saving, and the next replacement of the same file removes what a killed process has left. */
typedef struct grd_replacement grd_replacement;

/* NULL, with OSError set, when the folder is missing, `path` is a folder, or the file at `path` may not be written. A device or a pipe at `path` is
 * written to directly. */
GRD_API grd_replacement *grd_replacement_open(const char *path);
/* The descriptor of the new file, for writing in other ways. It is closed by commit and abandon. */
GRD_API int grd_replacement_descriptor(const grd_replacement *file);
/* Appends bytes. After a failure (false, with OSError) commit abandons the file. */
GRD_API bool grd_replacement_write(grd_replacement *file, const void *data, size_t size);
/* Brings the new file to disk and puts it in the place of the old one. Frees `file` in any case. False when an error is or was pending: the old
 * file is as it was, unless only bringing its folder to disk has failed. */
GRD_API bool grd_replacement_commit(grd_replacement *file);
/* Frees `file` and leaves the old one as it is. NULL is allowed. */
GRD_API void grd_replacement_abandon(grd_replacement *file);

GRD_END_DECLS

/* grd_named_tensors({"weight", weight}, {"bias", bias}) and grd_named_texts({"format", "pt"}) make lists of at least one entry. In C the entries
 * live as long as the enclosing block. */
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
