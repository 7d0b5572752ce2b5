/* Describes where a view lies in its base, and makes a view at the same place of another tensor. */
#include "autograd/view_place.h"

#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gen/uses/autograd/view_place.h"

struct grd_view_place grd_view_place_of(const grd_tensor *view, const grd_tensor *base)
{
    const bool mixed = view->dtype != base->dtype;
    const int64_t of_view = mixed && grd_dtype_is_complex((grd_dtype)view->dtype) ? 2 * view->offset : view->offset;
    const int64_t of_base = mixed && grd_dtype_is_complex((grd_dtype)base->dtype) ? 2 * base->offset : base->offset;
    const bool turned = grd_is_conjugated(view) != grd_is_conjugated(base);
    return (struct grd_view_place){(grd_dtype)view->dtype, grd_sizes(view), grd_strides(view), of_view - of_base, turned};
}

/* Returns the view of `base` with the dtype, sizes, strides and offset in `place`. Ignores place->turned, so the caller still has to change the
 * conjugate or negative bit. */
static grd_tensor *reinterpreted_at(grd_tensor *base, const struct grd_view_place *place)
{
    if (grd_pending() || place->dtype == (grd_dtype)base->dtype)
        return grd_as_strided(base, place->sizes, place->strides, .storage_offset = grd_int(base->offset + place->shift));
    if (!grd_dtype_is_complex(place->dtype)) {
        grd_tensor *parts = grd_view_as_real(base);
        return grd_as_strided(parts, place->sizes, place->strides, .storage_offset = grd_int(parts->offset + place->shift));
    }
    int64_t sizes[GRD_MAX_DIMS + 1], strides[GRD_MAX_DIMS + 1];
    const int64_t n = place->sizes.n;
    for (int64_t i = 0; i < n; i++) {
        sizes[i] = place->sizes.data[i];
        strides[i] = grd_wrapping_product(place->strides.data[i], 2);
    }
    sizes[n] = 2;
    strides[n] = 1;
    return grd_view_as_complex(grd_as_strided(base, grd_dims_from(sizes, n + 1), grd_dims_from(strides, n + 1),
                                              .storage_offset = grd_int(base->offset + place->shift)));
}

grd_tensor *grd_view_at(grd_tensor *base, const struct grd_view_place *place)
{
    grd_tensor *view = reinterpreted_at(base, place);
    if (!place->turned)
        return view;
    return grd_dtype_is_complex(place->dtype) ? grd_hidden_conj(view) : grd_hidden_neg_view(view);
}

grd_tensor *grd_view_like(grd_tensor *base, const grd_tensor *view)
{
    const struct grd_view_place place = grd_view_place_of(view, view->base);
    return grd_view_at(base, &place);
}
