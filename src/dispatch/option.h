/* Reads the options of a call. Note [Numbers as options] in gradus/options.h explains how a caller writes them. */
#ifndef GRD_DISPATCH_OPTION_H
#define GRD_DISPATCH_OPTION_H

#include <string.h>

#include "core/scalar.h"
#include "core/tensor.h"
#include "gradus/options.h"

/* True if `number` is the special NaN that marks an option which is not given. */
static inline bool grd_is_not_given(double number)
{
    const double mark = GRD_NOT_GIVEN_NUMBER;
    return memcmp(&number, &mark, sizeof mark) == 0;
}

/* Converts an option that the caller wrote as a C number, without braces, to a scalar in *room. The C type of the number is not known, because the
 * option holds it as a double. Returns `room`. */
static __attribute__((noinline, cold, unused)) const grd_scalar *grd_option_of_untyped(double number, grd_scalar *room)
{
    *room = grd_scalar_of_untyped(number);
    return room;
}

/* Returns the number that was given for an option, or `otherwise` if none was given. If the caller wrote a C number instead of a grd_scalar,
 * converts this number to a scalar in *room and returns `room`. Note [Numbers as options] explains both ways of writing. */
GRD_INLINE const grd_scalar *grd_given_number(const grd_scalar *option, const grd_scalar *otherwise, grd_scalar *room)
{
    if (option->kind != GRD_SCALAR_UNTYPED)
        return option->kind == GRD_SCALAR_NONE ? otherwise : option;
    if (GRD_LIKELY(grd_is_not_given(option->v.c.re)))
        return otherwise;
    return grd_option_of_untyped(option->v.c.re, room);
}

/* Returns the list that was given for an option, or `otherwise` if none was given. If the caller wrote a number without braces, returns a list of one
 * element that points into *option. */
static inline grd_dims grd_given_list(const grd_dims *option, grd_dims otherwise)
{
    if (option->data != GRD_LIST_FROM_NUMBER)
        return option->data != NULL || option->n != 0 ? *option : otherwise;
    return option->n == GRD_NOT_GIVEN ? otherwise : grd_dims_from(&option->n, 1);
}

/* True if the caller gave the device `option` as a number. False if the caller gave no device; option.index has no meaning then. */
static inline bool grd_device_is_number(grd_device option)
{
    return option.type != GRD_DEVICE_NONE && option.index == GRD_INDEX_FROM_NUMBER;
}

#endif
