/* Storages that borrow the data of another storage: Note [Lent data] in data.c. */
#ifndef GRD_CORE_LOAN_H
#define GRD_CORE_LOAN_H

#include "core/tensor.h"

struct grd_loan {
    struct grd_storage *lender;  /* owned; does not itself borrow from a storage */
    struct grd_storage *retired; /* the first storage of the borrower's tensor, owned while views use it; otherwise NULL */
};

/* Returns a new storage that borrows the data of `storage`; the caller owns it. NULL with the error raised. */
struct grd_storage *grd_storage_lend(struct grd_storage *storage);
/* Returns the loan of a storage that borrows from another one, or NULL. */
struct grd_loan *grd_loan_of(const struct grd_storage *storage);
/* Returns the storage that `storage` borrows its data from, or `storage` itself if it borrows from none. */
struct grd_storage *grd_storage_root(struct grd_storage *storage);

#endif
