/* Names that carry the instruction-set level and, in typed files, the dtype. The build compiles the files of this folder once per level
 * with -DGRD_LEVEL=v3 (portable, v2, v3, v4), and typed files once per dtype too, with -DGRD_DTYPE=float32. Which files for which dtypes
 * at which levels is a list in src/kernel/CMakeLists.txt. */
#ifndef GRD_KERNEL_LEVEL_H
#define GRD_KERNEL_LEVEL_H

#define GRD_PASTE2_(a, b) a##_##b
#define GRD_PASTE2(a, b) GRD_PASTE2_(a, b)
#define GRD_PASTE3_(a, b, c) a##_##b##_##c
#define GRD_PASTE3(a, b, c) GRD_PASTE3_(a, b, c)

/* grd_random_kernels_v3 */
#define GRD_AT_LEVEL(name) GRD_PASTE2(name, GRD_LEVEL)
/* grd_unary_row_float32_v3 */
#define GRD_TYPED(name) GRD_PASTE3(name, GRD_DTYPE, GRD_LEVEL)

/* In the tables of a level: `name` of the highest level, up to this one, that `file` is built at. gen/kernel_levels.h says which. */
#define GRD_BUILT(file, name, dtype) GRD_PASTE3(name, dtype, GRD_PASTE3(GRD_BUILT_##file, dtype, GRD_LEVEL))
#define GRD_BUILT_PLAIN(file, name) GRD_PASTE2(name, GRD_PASTE2(GRD_BUILT_##file, GRD_LEVEL))

#endif
