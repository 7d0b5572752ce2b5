/* How options are given by name: what gradus/ops.h is written with.
 *
 * Note [Plain options]
 * A plain number as an option means that number. An option that is not given has its default, which is not zero for many. C gives members that an
 * initializer does not name zero, so the macro of an operator names all others first and what the caller writes overrides them:
 *
 *     grd_var(x, .correction = 0)   is   grd_with_var(x, &(grd_var_options){GRD_VAR_DEFAULTS, .correction = 0})
 *
 * A Scalar and a list are structs whose first member is a number, so that a plain number, without braces, initializes that member alone (C11
 * 6.7.9, 20 and 22) and leaves the mark of the default in the others: GRD_SCALAR_PLAIN or GRD_PLAIN_LIST. The library knows by the mark that it
 * was a plain number, or, by the first member, that none was given. A plain Scalar is a double: below 2^53 in size a whole number counts as an
 * integer, and anything else as floating; grd_int and grd_float say it.
 * Compilers warn of members that are initialized twice or without braces, which is right elsewhere: GRD_NAMED silences them for the call alone. */
#ifndef GRADUS_OPTIONS_H
#define GRADUS_OPTIONS_H

#include "gradus/types.h"

/* The first member of a list and of a Scalar that were not given. The NaN is none that computing gives. */
#define GRD_NOT_GIVEN INT64_MIN
#define GRD_NOT_GIVEN_NUMBER __builtin_nan("0x6e6f6e65")

/* The marks of what is not given, or is a plain number. */
#define GRD_PLAIN_LIST ((const int64_t *)1)
#define GRD_PLAIN_INDEX INT8_MIN

#ifdef __cplusplus
#define GRD_DEFAULT(...) = __VA_ARGS__
#else
#define GRD_DEFAULT(...)
/* The defaults of options, by type. */
#define GRD_NO_NUMBER                                                                                                                      \
    {                                                                                                                                      \
        .v = {.c = {GRD_NOT_GIVEN_NUMBER, 0}}, .kind = GRD_SCALAR_PLAIN                                                                    \
    }
#define GRD_NO_LIST                                                                                                                        \
    {                                                                                                                                      \
        GRD_NOT_GIVEN, GRD_PLAIN_LIST                                                                                                      \
    }
#define GRD_NO_DEVICE                                                                                                                      \
    {                                                                                                                                      \
        GRD_DEVICE_NONE, GRD_PLAIN_INDEX                                                                                                   \
    }

/* The options of a call, or NULL where it gives none: `text` is what it gives as a string, which costs nothing when it is compiled. */
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
