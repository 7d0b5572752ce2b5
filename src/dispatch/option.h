/* Reads the options of a call: Note [Plain options] in gradus/options.h says how they are written. */
#ifndef GRD_DISPATCH_OPTION_H
#define GRD_DISPATCH_OPTION_H

#include <string.h>

#include "core/scalar.h"
#include "core/tensor.h"
#include "gradus/options.h"

static inline bool grd_is_not_given(double number)
{
    const double mark = GRD_NOT_GIVEN_NUMBER;
    return memcmp(&number, &mark, sizeof mark) == 0;
}

/* A plain number with its kind, in `room`. */
static __attribute__((noinline, cold, unused)) const grd_scalar *grd_plain_number(double number, grd_scalar *room)
{
    *room = grd_number_of_plain(number);
    return room;
}

/* The number that was given, or `otherwise`. A plain one gets its kind, in `room`. */
GRD_INLINE const grd_scalar *grd_given_number(const grd_scalar *option, const grd_scalar *otherwise, grd_scalar *room)
{
    if (option->kind != GRD_SCALAR_PLAIN)
        return option->kind == GRD_SCALAR_NONE ? otherwise : option;
    if (GRD_LIKELY(grd_is_not_given(option->v.c.re)))
        return otherwise;
    return grd_plain_number(option->v.c.re, room);
}

/* The list that was given, or `otherwise`. A plain number is a list of one, valid as long as the option. */
static inline grd_dims grd_given_list(const grd_dims *option, grd_dims otherwise)
{
    if (option->data != GRD_PLAIN_LIST)
        return option->data != NULL || option->n != 0 ? *option : otherwise;
    return option->n == GRD_NOT_GIVEN ? otherwise : grd_dims_from(&option->n, 1);
}

/* True for an option that is a number where a device is wanted. A device that is absent has any index. */
static inline bool grd_is_plain_device(grd_device option)
{
    return option.type != GRD_DEVICE_NONE && option.index == GRD_PLAIN_INDEX;
}

#endif
