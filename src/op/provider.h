/* Declares providers. A provider is a named implementation of an operator, with conditions for its use.
 *
 * The built-in providers of an operator are an array, e.g. in product.c. They are tried in order, and the last one, "native", can compute every call.
 * Providers of plug-ins (grd_register_provider() in gradus/dispatch.h) are tried before the built-in ones. The results of a plug-in's provider are
 * planned by calling the operator on the meta device.
 *
 * The environment variable GRADUS_PROVIDER is a list separated by commas, e.g. mm:native,-blas. "mm:native" makes native run mm wherever native can.
 * "-blas" forbids blas for all operators, and "mm:-blas" forbids it for mm. "native" without an operator applies to all operators. */
#ifndef GRD_OP_PROVIDER_H
#define GRD_OP_PROVIDER_H

#include "op/plan.h"

struct grd_provider {
    const char *name;
    bool (*serves)(const struct grd_plan *p); /* true if the provider can compute this call; NULL if it can compute every call */
    /* True if the provider is preferred for this call; called before `serves`. NULL if it is preferred for every call. */
    bool (*wins)(const struct grd_plan *p);
    void (*run)(const struct grd_plan *p);
};

/* Returns the provider that runs a planned call. By default it is the first of the n `providers` whose conditions `wins` and `serves` are both true.
 * Returns NULL, with RuntimeError, if GRADUS_PROVIDER forbids all providers that can compute the call. */
const struct grd_provider *grd_choose_provider(const struct grd_plan *p, const struct grd_provider *providers, int n);

/* True if the environment variable GRADUS_PROVIDER has a valid entry. If true, operators must not call a kernel directly, because the variable may
 * want another provider (implementation). */
extern GRD_HIDDEN bool grd_provider_wishes;

/* Reads GRADUS_PROVIDER. Called once, when the library is loaded. */
void grd_provider_init(void);

#endif
