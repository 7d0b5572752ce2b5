/* Registrations that hold together: while a transaction is open on a thread, every registration made there is a step of it, and all are kept or
 * all are taken back. Loading a plug-in is one.
 *
 * Not here: what a step changes. Whoever registers adds the step first, so that what cannot be noted is not done, and does both under a lock
 * that is held around a fork, so that a child finds both or neither.
 * Invariants
 * - Of each step exactly one of commit and roll_back is called, once; steps are rolled back last first.
 * - In the child of a fork the transactions of threads that are not there are rolled back; a fork does not wait for them, only for their end. */
#ifndef GRD_BASE_TRANSACTION_H
#define GRD_BASE_TRANSACTION_H

#include <stdbool.h>

/* What settles a step; either may be NULL where there is nothing to do. Neither calls code from outside. */
struct grd_step_type {
    void (*commit)(void *subject, int which);
    void (*roll_back)(void *subject, int which);
};

struct grd_step;

struct grd_transaction {
    struct grd_step *last, *first;
    struct grd_transaction *outer; /* a plug-in may load another: that one stands on its own */
    struct grd_transaction *next;  /* of all threads */
};

/* After the locks of whoever adds steps are in the list of base/fork.h: a step is settled under the one of this. */
void grd_transaction_init(void);

/* The transaction this thread is in, or NULL. */
struct grd_transaction *grd_transaction_current(void);
void grd_transaction_begin(struct grd_transaction *transaction);
/* Settles all steps: commits them in order, or rolls them back. Cannot fail. */
void grd_transaction_end(struct grd_transaction *transaction, bool commit);

/* Adds a step to the thread's transaction; with none open it is committed at once. False, with MemoryError, when it cannot be noted. */
bool grd_transaction_add(const struct grd_step_type *type, void *subject, int which);

#endif
