/* Makes storages that borrow the data of another storage and keep that storage alive. */
#include "core/loan.h"

#include "base/memory.h"
#include "core/new.h"
#include "core/tensor.h"

/* The release function of a borrowing storage: drops the storages that its loan owns and frees the loan. */
static void end_loan(void *context)
{
    struct grd_loan *loan = context;
    grd_object_drop(loan->lender);
    grd_object_drop(loan->retired);
    grd_free(loan, sizeof *loan);
}

struct grd_loan *grd_loan_of(const struct grd_storage *storage)
{
    return storage->release == end_loan ? storage->context : NULL;
}

struct grd_storage *grd_storage_root(struct grd_storage *storage)
{
    const struct grd_loan *loan = grd_loan_of(storage);
    return loan != NULL ? loan->lender : storage;
}

struct grd_storage *grd_storage_lend(struct grd_storage *storage)
{
    struct grd_storage *lender = grd_storage_root(storage);
    struct grd_loan *loan = grd_alloc(sizeof *loan);
    grd_tensor *holder = grd_new(grd_dims(0), GRD_UINT8, GRD_CPU);
    if (loan == NULL || grd_is_failed(holder)) {
        grd_free(loan, sizeof *loan);
        return NULL;
    }
    *loan = (struct grd_loan){grd_object_keep(lender), NULL};
    struct grd_storage *borrower = grd_object_keep(holder->storage);
    borrower->data = lender->data;
    borrower->bytes = lender->bytes;
    borrower->device = lender->device;
    borrower->device_index = lender->device_index;
    borrower->release = end_loan;
    borrower->context = loan;
    return borrower;
}
