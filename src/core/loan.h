/* Declares storages that borrow the data of another storage, so that two tensors can share memory but have different version counters. Note [Lent
 * data] is in data.c. */
#ifndef GRD_CORE_LOAN_H
#define GRD_CORE_LOAN_H

#include "core/tensor.h"

/* The context of a borrowing storage, i.e. of a storage whose data belongs to another one. It owns the storages that must not be freed before the
 * borrowing storage. */
struct grd_loan {
    struct grd_storage *lender; /* the storage that owns the data; owned by this loan */
    /* The storage that a tensor had before grd_set_data first replaced it; owned, because views of the tensor use it. NULL if there are no such
     * views. */
    struct grd_storage *retired;
};

/* Returns a new storage that borrows the data of `storage`; the caller owns the new storage. Returns NULL, with the error raised, on failure. */
struct grd_storage *grd_storage_lend(struct grd_storage *storage);
/* Returns the loan of a storage that borrows its data, or NULL for any other storage. */
struct grd_loan *grd_loan_of(const struct grd_storage *storage);
/* Returns the storage that `storage` borrows its data from, or `storage` itself if it does not borrow. */
struct grd_storage *grd_storage_root(struct grd_storage *storage);

#endif
