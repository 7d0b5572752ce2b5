/* Defines macros for options that are given by name. The macros of operators in gradus/ops.h use them.
 *
 * Note [Numbers as options]
 * An option that is not given must have its default, which often is not zero. But C sets members that an initializer does not name to zero.
 * Therefore the macro of an operator first names every option with its default. The caller's options come later and override the defaults:
 *
 *     grd_var(x, .correction = 0)   is   grd_with_var(x, &(grd_var_options){GRD_VAR_DEFAULTS, .correction = 0})
 *
 * A grd_scalar and a list are structs whose first member is a number. A caller may give such an option as a number without braces, which initializes
 * only the first member (C11 6.7.9, 20 and 22). The second member then keeps its default, GRD_SCALAR_UNTYPED or GRD_LIST_FROM_NUMBER. If both members
 * have their defaults, the option was not given. If only the second member has its default, the option was given as a number.
 * A number given for a grd_scalar is stored as a double. It counts as an integer if it is integral and its magnitude is below 2^53, otherwise as
 * floating point. With grd_int and grd_float the caller states the kind.
 * Compilers warn of members that are initialized twice or without braces. GRD_NAMED silences these warnings for one call only. */
#ifndef GRADUS_OPTIONS_H
#define GRADUS_OPTIONS_H

#include "gradus/types.h"

/* The values by which the library recognizes an option that is not given. The first member of a grd_dims, `n`, is then GRD_NOT_GIVEN. The first
 * member of a grd_scalar, `v`, is then GRD_NOT_GIVEN_NUMBER, a NaN with a payload that no arithmetic produces. */
#define GRD_NOT_GIVEN INT64_MIN
#define GRD_NOT_GIVEN_NUMBER __builtin_nan("0x6e6f6e65")

/* Default values of the second member of an option that is a list or a device. The member keeps this value if the option is not given. It also keeps
 * this value if the option is given as a number without braces, because the number sets only the first member. A complete struct overwrites it; Note
 * [Numbers as options]. */
#define GRD_LIST_FROM_NUMBER ((const int64_t *)1)
#define GRD_INDEX_FROM_NUMBER INT8_MIN

#ifdef __cplusplus
#define GRD_DEFAULT(...) = __VA_ARGS__
#else
#define GRD_DEFAULT(...)
/* Initializers for an option that is not given: a number, a list or a device. */
#define GRD_NO_NUMBER                                                                                                                      \
    {                                                                                                                                      \
        .v = {.c = {GRD_NOT_GIVEN_NUMBER, 0}}, .kind = GRD_SCALAR_UNTYPED                                                                  \
    }
#define GRD_NO_LIST                                                                                                                        \
    {                                                                                                                                      \
        GRD_NOT_GIVEN, GRD_LIST_FROM_NUMBER                                                                                                \
    }
#define GRD_NO_DEVICE                                                                                                                      \
    {                                                                                                                                      \
        GRD_DEVICE_NONE, GRD_INDEX_FROM_NUMBER                                                                                             \
    }

/* Evaluates to the pointer to the options of a call, or NULL if the call gives none. `text` is the options as a string literal, empty if there
 * are none. The test is done at compile time. */
#define GRD_GIVEN(text, ...) (sizeof(text) > 1 ? (__VA_ARGS__) : NULL)

#if defined(__clang__)
#define GRD_NAMED(call)                                                                                                                    \
    __extension__({                                                                                                                        \
        _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Winitializer-overrides\"")                                   \
            _Pragma("clang diagnostic ignored \"-Wmissing-braces\"") _Pragma("clang diagnostic ignored \"-Wmissing-field-initializers\"")  \
                _Pragma("clang diagnostic ignored \"-Woverlength-strings\"") call;                                                         \
        _Pragma("clang diagnostic pop")                                                                                                    \
    })
#elif defined(__GNUC__)
#define GRD_NAMED(call)                                                                                                                    \
    __extension__({                                                                                                                        \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"")                                               \
            _Pragma("GCC diagnostic ignored \"-Wmissing-braces\"") _Pragma("GCC diagnostic ignored \"-Woverlength-strings\"") call;        \
        _Pragma("GCC diagnostic pop")                                                                                                      \
    })
#else
#define GRD_NAMED(call) (call)
#endif
#endif

#endif
