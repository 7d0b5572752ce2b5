/* Defines macros for options that are given by name. The macros of operators in gradus/ops.h are made of them.
 *
 * Note [Numbers as options]
 * A number that is given for an option means that number, and an option that is not given has its default, which often is not zero. But C sets
 * members that an initializer does not name to zero. So the macro of an operator first names every option with its default, and the caller's
 * options, which come later, override the defaults:
 *
 *     grd_var(x, .correction = 0)   is   grd_with_var(x, &(grd_var_options){GRD_VAR_DEFAULTS, .correction = 0})
 *
 * A grd_scalar and a list are structs whose first member is a number. A number without braces initializes only this first member (C11 6.7.9, 20
 * and 22). The default has written a mark, GRD_SCALAR_UNTYPED or GRD_LIST_FROM_NUMBER, to another member, which then stays. If the library
 * finds the mark, the option was given as a number or, if the first member is still GRD_NOT_GIVEN, was not given. A number given for a grd_scalar is
 * stored as a double. If it is integral and its magnitude is below 2^53, it counts as an integer, otherwise as floating point; grd_int and
 * grd_float state the kind.
 * Compilers warn of members that are initialized twice or without braces. GRD_NAMED silences these warnings for one call only. */
#ifndef GRADUS_OPTIONS_H
#define GRADUS_OPTIONS_H

#include "gradus/types.h"

/* Values of the first member of a list and of a grd_scalar. They mean that the option was not given. The payload of the NaN is one that no arithmetic
 * produces. */
#define GRD_NOT_GIVEN INT64_MIN
#define GRD_NOT_GIVEN_NUMBER __builtin_nan("0x6e6f6e65")

/* Values of another member of an option's list or device. They mean that the option was given as a number, or not at all, and not as a complete
 * struct; Note [Numbers as options]. */
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
