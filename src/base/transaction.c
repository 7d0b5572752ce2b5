/* Records the steps of transactions, and commits the steps or rolls them back; see transaction.h. */
#include "base/transaction.h"

#include <pthread.h>
#include <stddef.h>

#include "base/fork.h"
#include "base/memory.h"

struct grd_step {
    const struct grd_step_type *type;
    void *subject;
    int which;
    struct grd_step *previous, *next;
};

static _Thread_local struct grd_transaction *current __attribute__((tls_model("initial-exec")));
/* The open transactions of all threads, a nested transaction before the one that contains it. Guarded by the lock, which is also held while steps
 * are committed or rolled back. */
static struct grd_transaction *open_transactions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct grd_transaction *grd_transaction_current(void)
{
    return current;
}

void grd_transaction_begin(struct grd_transaction *transaction)
{
    pthread_mutex_lock(&lock);
    *transaction = (struct grd_transaction){.outer = current, .next = open_transactions};
    open_transactions = transaction;
    pthread_mutex_unlock(&lock);
    current = transaction;
}

/* Commits a step if `commit` is true, otherwise rolls it back. */
static void settle(const struct grd_step_type *type, void *subject, int which, bool commit)
{
    void (*function)(void *, int) = commit ? type->commit : type->roll_back;
    if (function != NULL)
        function(subject, which);
}

/* Removes a transaction from the list of open transactions. Commits its steps if `commit` is true, otherwise rolls them back. The caller holds
 * the lock. */
static void settle_all(struct grd_transaction *transaction, bool commit)
{
    struct grd_transaction **place = &open_transactions;
    while (*place != transaction)
        place = &(*place)->next;
    *place = transaction->next;
    struct grd_step *step = commit ? transaction->first : transaction->last;
    while (step != NULL) {
        struct grd_step *following = commit ? step->next : step->previous;
        settle(step->type, step->subject, step->which, commit);
        grd_free(step, sizeof *step);
        step = following;
    }
}

void grd_transaction_end(struct grd_transaction *transaction, bool commit)
{
    pthread_mutex_lock(&lock);
    current = transaction->outer;
    settle_all(transaction, commit);
    pthread_mutex_unlock(&lock);
}

bool grd_transaction_add(const struct grd_step_type *type, void *subject, int which)
{
    if (current == NULL) {
        settle(type, subject, which, true);
        return true;
    }
    struct grd_step *step = grd_alloc(sizeof *step);
    if (step == NULL)
        return false;
    *step = (struct grd_step){.type = type, .subject = subject, .which = which, .previous = current->last};
    *(current->last != NULL ? &current->last->next : &current->first) = step;
    current->last = step;
    return true;
}

/* True if `transaction` was opened by this thread. */
static bool is_own(const struct grd_transaction *transaction)
{
    const struct grd_transaction *own = current;
    while (own != NULL && own != transaction)
        own = own->outer;
    return own != NULL;
}

/* Runs in the child of a fork and rolls back the transactions of threads that do not exist in the child. These transactions can still be read,
 * because the child has a copy of the stacks of all threads. */
static void roll_back_lost(void)
{
    struct grd_transaction *next;
    pthread_mutex_lock(&lock);
    for (struct grd_transaction *transaction = open_transactions; transaction != NULL; transaction = next) {
        next = transaction->next;
        if (!is_own(transaction))
            settle_all(transaction, false);
    }
    pthread_mutex_unlock(&lock);
}

void grd_transaction_init(void)
{
    static struct grd_held_lock held = {.lock = &lock};
    grd_hold_around_fork(&held);
    /* base/fork.c has registered its fork handlers earlier, and the handlers of the child run in order of registration. So the locks are already
     * released when roll_back_lost runs. */
    pthread_atfork(NULL, NULL, roll_back_lost);
}
