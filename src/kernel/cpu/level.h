/* Defines macros that append the instruction-set level, and in typed files also the dtype, to a name. The build compiles each file of this folder
 * once per level, with -DGRD_LEVEL=v3 for example. x86-64 has the levels `portable`, `v2`, `v3` and `v4`. Typed files are also compiled once per
 * dtype, with -DGRD_DTYPE=float32 for example. A list in src/kernel/CMakeLists.txt says for which dtypes and levels each file is compiled. */
#ifndef GRD_KERNEL_LEVEL_H
#define GRD_KERNEL_LEVEL_H

#define GRD_PASTE2_(a, b) a##_##b
#define GRD_PASTE2(a, b) GRD_PASTE2_(a, b)
#define GRD_PASTE3_(a, b, c) a##_##b##_##c
#define GRD_PASTE3(a, b, c) GRD_PASTE3_(a, b, c)

/* Appends the instruction-set level to a name. At level v3, GRD_AT_LEVEL(grd_random_kernels) is grd_random_kernels_v3. */
#define GRD_AT_LEVEL(name) GRD_PASTE2(name, GRD_LEVEL)
/* Appends the dtype and the instruction-set level to a name. For float32 at level v3, GRD_TYPED(grd_unary_row) is grd_unary_row_float32_v3. */
#define GRD_TYPED(name) GRD_PASTE3(name, GRD_DTYPE, GRD_LEVEL)

/* Expands to `name` with the dtype and an instruction-set level appended. The appended level is the highest one, up to the current level, for which
 * `file` is compiled; gen/kernel_levels.h defines it. GRD_BUILT_UNTYPED is for files that are not compiled per dtype. */
#define GRD_BUILT(file, name, dtype) GRD_PASTE3(name, dtype, GRD_PASTE3(GRD_BUILT_##file, dtype, GRD_LEVEL))
#define GRD_BUILT_UNTYPED(file, name) GRD_PASTE2(name, GRD_PASTE2(GRD_BUILT_##file, GRD_LEVEL))

#endif
