/* Tests the parser of operator signatures at run time: the meaning of each part and the reported position of each mistake. The signatures of the
 * schema's operators must parse to the tables that the code generator made. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#include "dispatch/schema_text.h"

static bool is(struct grd_span span, const char *word)
{
    return grd_span_is(span, word);
}

static void test_every_part_of_a_signature_is_parsed(void **state)
{
    (void)state;
    struct grd_schema s;
    assert_true(grd_schema_read("  mylib :: f (Tensor self,Tensor? other, Tensor[] list, *, Scalar scale = 1, int[]? dim=None,\n"
                                " str mode='x, (y)', float eps=-1e-5, bool keep=True, int[] k=[1, -2], int? n=3, dtype? d=None) "
                                "-> ( Tensor a , Tensor )",
                                &s) == false);
    expect_error(GRD_ERROR_VALUE,
                 "schema: expected '(' at character 9 of \"  mylib :: f (Tensor self,Tensor? other, Tensor[] list, *, Scalar scale = 1, "
                 "int[]? dim=None,\n str mode='x, (y)', float eps=-1e-5, bool keep=True, int[] k=[1, -2], int? n=3, dtype? d=None) -> ( "
                 "Tensor a , Tensor )\"");
    assert_true(grd_schema_read("mylib::f(Tensor self,Tensor? other, Tensor[] list, *, Scalar scale = 1, int[]? dim=None,\n"
                                " str mode='x, (y)', float eps=-1e-5, bool keep=True, int[] k=[1, -2], int? n=3, dtype? d=None) "
                                "-> ( Tensor a , Tensor )",
                                &s));
    assert_true(is(s.name, "mylib::f") && s.has_namespace);
    assert_int_equal(s.nargs, 11);
    const struct grd_schema_arg *a = s.args;
    assert_true(is(a[0].name, "self") && a[0].kind == GRD_KIND_TENSOR && !a[0].optional && a[0].value.kind == GRD_KIND_NONE);
    assert_true(is(a[1].name, "other") && a[1].kind == GRD_KIND_TENSOR && a[1].optional);
    assert_true(a[2].kind == GRD_KIND_TENSORS && !a[2].optional);
    assert_true(a[3].kind == GRD_KIND_SCALAR && a[3].value.v.scalar.kind == GRD_SCALAR_INT && a[3].value.v.scalar.v.i == 1);
    assert_true(a[4].kind == GRD_KIND_DIMS && a[4].optional && a[4].value.kind == GRD_KIND_NONE);
    assert_true(a[5].kind == GRD_KIND_STRING && is(a[5].string, "x, (y)"));
    assert_true(a[6].kind == GRD_KIND_FLOAT && a[6].value.v.number == -1e-5);
    assert_true(a[7].kind == GRD_KIND_BOOL && a[7].value.v.boolean);
    assert_true(a[8].kind == GRD_KIND_DIMS && a[8].value.v.dims.n == 2 && a[8].value.v.dims.data[1] == -2);
    assert_true(a[9].kind == GRD_KIND_SCALAR && a[9].optional && a[9].value.kind == GRD_KIND_SCALAR && a[9].value.v.scalar.v.i == 3);
    assert_true(a[10].kind == GRD_KIND_DTYPE && a[10].optional);
    assert_int_equal(s.nresults, 2);
    assert_true(is(s.results[0], "a") && s.results[1].length == 0 && !s.returns_list);

    assert_true(grd_schema_read("f() -> Tensor[]", &s));
    assert_true(s.returns_list && s.nresults == 1 && s.nargs == 0 && !s.has_namespace);
    assert_true(grd_schema_read("f(float x=-inf, float y=.5, Scalar z=True, int[] k=7, int[] e=[]) -> Tensor y0", &s));
    assert_true(s.args[0].value.v.number == -(double)INFINITY && s.args[1].value.v.number == 0.5);
    assert_true(s.args[2].value.v.scalar.kind == GRD_SCALAR_BOOL);
    assert_true(s.args[3].value.v.dims.n == 1 && s.args[3].value.v.dims.data[0] == 7);
    assert_true(s.args[4].value.v.dims.n == 0 && s.args[4].value.v.dims.data != NULL);
    assert_true(is(s.results[0], "y0"));
}

static void test_mistakes_are_reported_with_their_position(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "expected the name of the operator at character 1"},
        {"1(", "expected the name of the operator at character 1"},
        {"a::(Tensor x) -> Tensor", "expected the name of the operator at character 4"},
        {"a:: b(Tensor x) -> Tensor", "expected the name of the operator at character 4"},
        {"a.b(Tensor x) -> Tensor", "expected '(' at character 2"},
        {"f", "expected '(' at character 2"},
        {"f(", "expected an argument at character 3"},
        {"f(Tensor x", "expected ')' at character 11"},
        {"f(Tensor x,) -> Tensor", "expected an argument at character 12"},
        {"f(Tensor x y) -> Tensor", "expected ')' at character 12"},
        {"f(Tensr x) -> Tensor", "'Tensr' is no kind of argument at character 3"},
        {"f(Tensor(a!) x) -> Tensor", "expected the name of the argument at character 9"},
        {"f(Tensor) -> Tensor", "expected the name of the argument at character 9"},
        {"f(float[] x) -> Tensor", "lists are of Tensor or int at character 3"},
        {"f(int?[] x) -> Tensor", "there are no lists of optional values at character 3"},
        {"f(Tensor[]? x) -> Tensor", "a list of tensors cannot be absent at character 3"},
        {"f(Tensor[] x=None) -> Tensor", "a list of tensors has no default at character 14"},
        {"f(Tensor x, int x) -> Tensor", "two arguments have the same name at character 17"},
        {"f(*, Tensor x, *) -> Tensor", "expected an argument at character 16"},
        {"f(int x=1.5) -> Tensor", "expected an integer at character 9"},
        {"f(int x=True) -> Tensor", "expected an integer at character 9"},
        {"f(int x=99999999999999999999) -> Tensor", "the integer does not fit into 64 bits at character 9"},
        {"f(int x=1a) -> Tensor", "expected a number at character 9"},
        {"f(int x=) -> Tensor", "expected a number at character 9"},
        {"f(float x=True) -> Tensor", "expected a number at character 11"},
        {"f(bool x=1) -> Tensor", "expected True or False at character 10"},
        {"f(str x=y) -> Tensor", "expected a string at character 9"},
        {"f(str x='y) -> Tensor", "the string does not end at character 9"},
        {"f(dtype d=float32) -> Tensor", "expected None at character 11"},
        {"f(Tensor x=1) -> Tensor", "expected None at character 12"},
        {"f(int[] x=[1, 2) -> Tensor", "expected ']' at character 16"},
        {"f(int[] x=[1, 2.5]) -> Tensor", "expected an integer at character 15"},
        {"f(Tensor x)", "expected '->' at character 12"},
        {"f(Tensor x) -> ", "expected 'Tensor' at character 16"},
        {"f(Tensor x) -> int", "expected 'Tensor' at character 16"},
        {"f(Tensor x) -> ()", "expected 'Tensor' at character 17"},
        {"f(Tensor x) -> (Tensor", "expected ')' at character 23"},
        {"f(Tensor x) -> (Tensor[], Tensor)", "expected ')' at character 23"},
        {"f(Tensor x) -> Tensor x", "an argument and a result have the same name at character 23"},
        {"f(Tensor x) -> (Tensor a, Tensor a)", "two results have the same name at character 34"},
        {"f(Tensor x) -> (Tensor, Tensor, Tensor, Tensor, Tensor)", "an operator has at most 4 results, not more at character 49"},
        {"f(Tensor x) -> Tensor, Tensor", "expected the end at character 22"},
        {"f(int a,int b,int c,int d,int e,int g,int h,int i,int j,int k,int l,int m,int n,int o,int p,int q,int r) -> Tensor",
         "an operator has at most 16 arguments, not more at character 99"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grd_schema schema;
        char text[512];
        assert_false(grd_schema_read(cases[i][0], &schema));
        snprintf(text, sizeof text, "schema: %s of \"%s\"", cases[i][1], cases[i][0]);
        expect_error(GRD_ERROR_VALUE, text);
    }
}

static void test_default_lists_hold_at_most_64_integers(void **state)
{
    (void)state;
    char text[512] = "f(int[] x=[0", tail[] = ",0";
    for (int i = 0; i < GRD_MAX_DIMS; i++)
        strcat(text, tail);
    struct grd_schema schema;
    assert_false(grd_schema_read(strcat(text, "]) -> Tensor"), &schema));
    assert_non_null(strstr(grd_error_message(), "the defaults hold more than 64 integers at character 140"));
    grd_error_clear();
}

/* The code generator made its tables from the same signatures that are parsed here, so parsing must give equal tables. */
static void test_parsed_signatures_equal_the_generated_tables(void **state)
{
    (void)state;
    for (int64_t i = 0; i < grd_op_count(); i++) {
        const struct grd_op *op = grd_op_at(i);
        struct grd_schema s;
        if (!grd_schema_read(op->schema, &s))
            fail_msg("%s", grd_error_message());
        assert_true(is(s.name, op->name));
        assert_int_equal(s.nargs, op->nargs);
        assert_int_equal(s.nresults, op->nresults);
        assert_int_equal(s.returns_list, op->returns_list);
        for (int k = 0; k < s.nargs; k++) {
            const struct grd_arg *arg = &op->args[k];
            assert_true(is(s.args[k].name, arg->name));
            assert_int_equal(s.args[k].kind, arg->kind);
            assert_int_equal(s.args[k].optional, arg->optional);
            assert_int_equal(s.args[k].value.kind, arg->value.kind);
            if (arg->value.kind == GRD_KIND_SCALAR) {
                assert_int_equal(s.args[k].value.v.scalar.kind, arg->value.v.scalar.kind);
                assert_true(grd_scalar_double(s.args[k].value.v.scalar) == grd_scalar_double(arg->value.v.scalar));
            } else if (arg->value.kind == GRD_KIND_INT) {
                assert_int_equal(s.args[k].value.v.integer, arg->value.v.integer);
            } else if (arg->value.kind == GRD_KIND_FLOAT) {
                assert_true(s.args[k].value.v.number == arg->value.v.number);
            } else if (arg->value.kind == GRD_KIND_BOOL) {
                assert_int_equal(s.args[k].value.v.boolean, arg->value.v.boolean);
            } else if (arg->value.kind == GRD_KIND_STRING) {
                assert_true(is(s.args[k].string, arg->value.v.string));
            } else if (arg->value.kind == GRD_KIND_DIMS) {
                assert_int_equal(s.args[k].value.v.dims.n, arg->value.v.dims.n);
                assert_memory_equal(s.args[k].value.v.dims.data, arg->value.v.dims.data, (size_t)arg->value.v.dims.n * sizeof(int64_t));
            }
        }
    }
}

/* Replaces each character of a signature in turn by each character of `others`. One of these is NUL, which ends the signature early. Each resulting
 * text must be either parsed or refused. */
static void test_damaged_signatures_are_parsed_or_refused(void **state)
{
    (void)state;
    static const char whole[] = "lib::f(Tensor self, int[]? k=[1,-2], *, Scalar s=1e3, str m='x') -> (Tensor a, Tensor b)";
    static const char others[] = "\"'()[],:*=?-.1eN \xff";
    int read = 0;
    for (size_t i = 0; i < sizeof whole - 1; i++)
        for (size_t k = 0; k < sizeof others; k++) {
            /* The text is on the heap, so that AddressSanitizer reports a read past its end. */
            char *text = strdup(whole);
            struct grd_schema schema;
            text[i] = others[k];
            read += grd_schema_read(text, &schema);
            assert_true(grd_ok() || grd_error_get() == GRD_ERROR_VALUE);
            grd_error_clear();
            free(text);
        }
    assert_true(read > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_part_of_a_signature_is_parsed),
        cmocka_unit_test(test_mistakes_are_reported_with_their_position),
        cmocka_unit_test(test_default_lists_hold_at_most_64_integers),
        cmocka_unit_test(test_parsed_signatures_equal_the_generated_tables),
        cmocka_unit_test(test_damaged_signatures_are_parsed_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
