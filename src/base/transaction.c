/* The steps of a transaction, in a list. */
#include "base/transaction.h"

#include <stddef.h>

#include "base/memory.h"

struct grd_step {
    const struct grd_step_type *type;
    void *subject;
    int which;
    struct grd_step *previous, *next;
};

static _Thread_local struct grd_transaction *current __attribute__((tls_model("initial-exec")));

struct grd_transaction *grd_transaction_current(void)
{
    return current;
}

void grd_transaction_begin(struct grd_transaction *transaction)
{
    *transaction = (struct grd_transaction){.outer = current};
    current = transaction;
}

static void settle(const struct grd_step_type *type, void *subject, int which, bool commit)
{
    void (*function)(void *, int) = commit ? type->commit : type->roll_back;
    if (function != NULL)
        function(subject, which);
}

void grd_transaction_end(struct grd_transaction *transaction, bool commit)
{
    struct grd_step *step = commit ? transaction->first : transaction->last;
    current = transaction->outer;
    while (step != NULL) {
        struct grd_step *following = commit ? step->next : step->previous;
        settle(step->type, step->subject, step->which, commit);
        grd_free(step, sizeof *step);
        step = following;
    }
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
