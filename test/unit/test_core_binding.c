/* Tests bindings. A binding connects a tensor with the object that represents it in another language, and either of the two may own the other.
 * Also tests moving a tensor out of a scope and back. */
#include "support.h"

struct object {
    grd_binding binding;
    int released;
};

static void release_object(grd_binding *binding)
{
    ((struct object *)binding)->released++;
}

static void a_binding_finds_the_object_of_its_tensor(void **state)
{
    (void)state;
    struct object object = {{release_object}, 0};
    grd_tensor *t = grd_ones(grd_dims(3));
    assert_null(grd_binding_of(t));
    grd_binding_set(t, &object.binding, false);
    assert_ptr_equal(grd_binding_of(t), &object.binding);
    assert_false(grd_binding_is_owned(t));
    assert_null(grd_binding_of(grd_detach(t)));
    grd_binding_set(t, NULL, true);
    assert_null(grd_binding_of(t));
    assert_false(grd_binding_is_owned(t));
    assert_int_equal(object.released, 0);
}

/* A tensor that owns its binding's object releases the object exactly once, when the tensor is freed. Other tensors never release it. */
static void a_tensor_releases_the_object_it_owns(void **state)
{
    (void)state;
    struct object pointed_to = {{release_object}, 0}, owned = {{release_object}, 0}, taken_back = {{release_object}, 0};
    const grd_scope scope = grd_scope_open();
    grd_binding_set(grd_ones(grd_dims(3)), &pointed_to.binding, false);
    grd_tensor *t = grd_ones(grd_dims(3)), *back = grd_ones(grd_dims(3000));
    grd_binding_set(t, &owned.binding, true);
    assert_true(grd_binding_is_owned(t));
    grd_binding_set(back, &taken_back.binding, true);
    grd_binding_set(back, &taken_back.binding, false);
    grd_tensor *view = grd_keep(grd_select(t, 0, 1));
    grd_scope_close(scope);
    assert_int_equal(owned.released, 0); /* the view still holds a reference to the tensor */
    grd_drop(view);
    assert_int_equal(owned.released, 1);
    assert_int_equal(pointed_to.released + taken_back.released, 0);
}

static void the_failed_tensor_takes_no_binding(void **state)
{
    (void)state;
    struct object object = {{release_object}, 0};
    grd_binding_set(grd_failed, &object.binding, true);
    assert_null(grd_binding_of(grd_failed));
    assert_false(grd_binding_is_owned(grd_failed));
}

static void grd_scope_take_removes_a_tensor_from_its_scope(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    grd_tensor *alone = grd_scope_take(scope, grd_ones(grd_dims(2)));
    assert_true(grd_is_sole_owner(alone));
    scope = grd_scope_open();
    grd_tensor *first = grd_ones(grd_dims(2));
    grd_exp(first);
    assert_ptr_equal(grd_scope_take(scope, first), first);
    assert_true(grd_is_sole_owner(first));
    scope = grd_scope_open();
    grd_tensor *second = grd_add(first, first);
    grd_exp(second);
    assert_ptr_equal(grd_scope_take(scope, second), second);
    assert_true(grd_is_sole_owner(second));
    assert_ptr_equal(grd_keep(second), second);
    assert_false(grd_is_sole_owner(second));
    grd_drop(second);
    grd_drop(second);
    grd_drop(first);
    grd_drop(alone);
}

static void grd_scope_give_returns_a_tensor_to_the_scope(void **state)
{
    (void)state;
    const int64_t before = grd_memory_get_stats().blocks;
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_scope_take(scope, grd_ones(grd_dims(2)));
    scope = grd_scope_open();
    assert_ptr_equal(grd_scope_give(t), t);
    assert_true(grd_is_sole_owner(t));
    grd_scope_close(scope);
    assert_int_equal(grd_memory_get_stats().blocks, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(a_binding_finds_the_object_of_its_tensor),     IN_SCOPE(a_tensor_releases_the_object_it_owns),
        IN_SCOPE(the_failed_tensor_takes_no_binding),           IN_SCOPE(grd_scope_take_removes_a_tensor_from_its_scope),
        IN_SCOPE(grd_scope_give_returns_a_tensor_to_the_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
