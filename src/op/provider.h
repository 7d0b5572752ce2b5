/* Providers: named implementations of an operator's run, each with conditions.
 *
 * Those of the tree belong to a law: an array, tried in order, whose last one, "native", serves everything (products.c has one). A plug-in's
 * (grd_register_provider in gradus/dispatch.h) are tried before them; then the plan is the operator on the meta device.
 * GRADUS_PROVIDER=mm:native,-blas is a list, by commas: "mm:native" has mm run by native wherever that serves, "-blas" never has anything run by
 * blas, "mm:-blas" not mm, and "native" without an operator stands for all. */
#ifndef GRD_OP_PROVIDER_H
#define GRD_OP_PROVIDER_H

#include "op/plan.h"

struct grd_provider {
    const char *name;
    bool (*serves)(const struct grd_plan *p); /* true if it can compute this call; NULL: it can compute all */
    bool (*wins)(const struct grd_plan *p);   /* true if it should be chosen by default; NULL: whenever it serves. Called first */
    void (*run)(const struct grd_plan *p);
};

/* Returns the provider that runs a planned call. NULL, with RuntimeError, if GRADUS_PROVIDER forbids all that serve. */
const struct grd_provider *grd_choose_provider(const struct grd_plan *p, const struct grd_provider *providers, int n);

/* True if GRADUS_PROVIDER is set to anything: then a shortcut may not choose by itself. */
extern GRD_HIDDEN bool grd_provider_wishes;

/* Reads GRADUS_PROVIDER; run once, at load. */
void grd_provider_init(void);

#endif
