/* Makes a group of registrations all-or-nothing. While a transaction is open on a thread, every registration that the thread makes is a step of
 * the transaction. In the end all steps are committed or all are rolled back. Loading a plug-in is a transaction.
 *
 * Code that registers something adds the step before it changes anything, so that nothing changes if the step cannot be recorded. It adds the
 * step and makes the change under a lock that is held around a fork, so that a child process finds both done or neither.
 * Invariants
 * - For each step exactly one of `commit` and `roll_back` is called, once. Steps are rolled back in reverse order.
 * - In the child of a fork, the transactions of threads that do not exist there are rolled back. A fork waits for a transaction that is being
 *   ended, but not for an open one. */
#ifndef GRD_BASE_TRANSACTION_H
#define GRD_BASE_TRANSACTION_H

#include <stdbool.h>

/* Two functions that are called with a step's `subject` and `which`: one commits the step, the other rolls it back. Each is NULL if there is
 * nothing to do. Neither calls code from outside the library. */
struct grd_step_type {
    void (*commit)(void *subject, int which);
    void (*roll_back)(void *subject, int which);
};

struct grd_step;

struct grd_transaction {
    struct grd_step *last, *first;
    struct grd_transaction *outer; /* the open transaction that contains this one, as when a plug-in loads another; NULL if none */
    struct grd_transaction *next;  /* next transaction in the list of the open transactions of all threads */
};

/* Registers the lock of transaction.c with base/fork.h. Must be called after the locks of all code that adds steps are registered, because
 * `commit` and `roll_back` take those locks while the lock of transaction.c is held. */
void grd_transaction_init(void);

/* Returns the innermost open transaction of this thread, or NULL. */
struct grd_transaction *grd_transaction_current(void);
/* Opens a transaction on this thread, inside the current one if there is one. *transaction must live until grd_transaction_end. */
void grd_transaction_begin(struct grd_transaction *transaction);
/* Ends a transaction: commits its steps in order if `commit` is true, otherwise rolls them back in reverse order. Cannot fail. */
void grd_transaction_end(struct grd_transaction *transaction, bool commit);

/* Adds a step to the innermost transaction of this thread. `subject` and `which` are passed to the functions in `type`, which commit the step or roll
 * it back. If no transaction is open, the step is committed at once. Returns false, with MemoryError, if the step cannot be recorded. */
bool grd_transaction_add(const struct grd_step_type *type, void *subject, int which);

#endif
