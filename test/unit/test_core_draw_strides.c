/* Tests grd_draw_strides, which draws a tensor's memory as SVG: the text it returns, the elements it omits, and its errors. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

static int64_t count(const char *text, const char *part)
{
    int64_t n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        n++;
    return n;
}

/* Checks that the drawing of `t` has the given numbers of storage cells, tensor elements and ellipses ("dots"), and contains `text`. */
static void expect_picture(grd_tensor *t, int64_t cells, int64_t elements, int64_t dots, const char *text)
{
    char *picture = grd_draw_strides(t);
    assert_non_null(picture);
    assert_int_equal(count(picture, "class=\"cell\""), cells);
    assert_int_equal(count(picture, "class=\"element\""), elements);
    assert_int_equal(count(picture, "class=\"dots\""), dots);
    assert_int_equal(count(picture, "<g"), count(picture, "</g>"));
    if (strstr(picture, text) == NULL)
        fail_msg("\"%s\" is not in %s", text, picture);
    free(picture);
}

static void the_complete_svg_of_a_reversed_slice(void **state)
{
    (void)state;
    const float data[] = {1.5F, -2, 3};
    char *picture = grd_draw_strides(grd_slice(grd_from_data(data, grd_dims(3), GRD_FLOAT32), .step = -2));
    assert_string_equal(
        picture,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"486\" height=\"118\" viewBox=\"0 0 486 118\" role=\"img\" "
        "aria-label=\"storage and elements of a tensor of sizes [2], strides [-2], offset 2\" "
        "font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\" text-anchor=\"middle\" fill=\"#16181c\">\n"
        "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#ffffff\"/>\n<g text-anchor=\"start\" font-size=\"13\">\n"
        "<text x=\"14\" y=\"26\" font-weight=\"bold\">sizes [2], strides [-2], offset 2, float32</text>\n"
        "<text x=\"14\" y=\"52\">storage: 3 cells</text>\n<text x=\"224\" y=\"52\">tensor: 2 elements</text>\n</g>\n"
        "<g class=\"cell\" transform=\"translate(14,62)\" data-cell=\"0\" data-reads=\"1\"><title>storage cell 0, read by 1 element</title>"
        "<rect width=\"44\" height=\"42\" rx=\"6\" fill=\"#c7b8f5\"/><text x=\"22\" y=\"13\" font-size=\"10\">0</text>"
        "<text x=\"22\" y=\"31\">1.5</text></g>\n"
        "<g class=\"cell\" transform=\"translate(62,62)\" data-cell=\"1\" data-reads=\"0\"><title>storage cell 1, read by 0 "
        "elements</title>"
        "<rect width=\"44\" height=\"42\" rx=\"6\" stroke-dasharray=\"3 3\" stroke=\"#8a8f98\" fill=\"none\"/>"
        "<text x=\"22\" y=\"13\" font-size=\"10\">1</text><text x=\"22\" y=\"31\">-2</text></g>\n"
        "<g class=\"cell\" transform=\"translate(110,62)\" data-cell=\"2\" data-reads=\"1\"><title>storage cell 2, read by 1 "
        "element</title>"
        "<rect width=\"44\" height=\"42\" rx=\"6\" fill=\"#f5c7b8\"/><text x=\"22\" y=\"13\" font-size=\"10\">2</text>"
        "<text x=\"22\" y=\"31\">3</text></g>\n"
        "<g class=\"element\" transform=\"translate(224,62)\" data-index=\"0\" data-cell=\"2\">"
        "<title>[0]: 2 + 0·(-2) is storage cell 2</title><rect width=\"44\" height=\"42\" rx=\"6\" fill=\"#f5c7b8\"/>"
        "<text x=\"22\" y=\"13\" font-size=\"10\">0</text><text x=\"22\" y=\"31\">3</text></g>\n"
        "<g class=\"element\" transform=\"translate(272,62)\" data-index=\"1\" data-cell=\"0\">"
        "<title>[1]: 2 + 1·(-2) is storage cell 0</title><rect width=\"44\" height=\"42\" rx=\"6\" fill=\"#c7b8f5\"/>"
        "<text x=\"22\" y=\"13\" font-size=\"10\">1</text><text x=\"22\" y=\"31\">1.5</text></g>\n"
        "</svg>\n");
    free(picture);
}

static void views_draw_the_cells_that_they_read(void **state)
{
    (void)state;
    expect_picture(grd_unfold(iota(grd_dims(8)), 0, 3, 1), 8, 18, 0, "<title>storage cell 3, read by 3 elements</title>");
    expect_picture(grd_expand(iota(grd_dims(3, 1)), grd_dims(2, 3, 4)), 3, 24, 0, "[1, 2, 3]: 0 + 1·0 + 2·1 + 3·0 is storage cell 2");
    expect_picture(grd_diagonal(iota(grd_dims(4, 4)), .offset = 1), 16, 3, 0, "data-index=\"2\" data-cell=\"11\"");
    expect_picture(grd_select(iota(grd_dims(2, 2)), 0, 1), 4, 2, 0, "[1]: 2 + 1·1 is storage cell 3");
    expect_picture(grd_reshape(iota(grd_dims(1)), GRD_NO_DIMS), 1, 1, 0, "[]: 0 is storage cell 0");
    expect_picture(iota(grd_dims(2, 0)), 0, 0, 0, "tensor: 0 elements");
    expect_picture(grd_slice(iota(grd_dims(6)), .start = 6), 6, 0, 0, "storage: 6 cells");
    expect_picture(grd_failed, 1, 1, 0, ">nan</text>");
}

static void elements_are_drawn_as_text(void **state)
{
    (void)state;
    const double complex_number[] = {1, -2.5};
    const uint64_t large = UINT64_MAX;
    grd_tensor *z = grd_from_data(complex_number, grd_dims(1), GRD_COMPLEX128);
    expect_picture(z, 1, 1, 0, ">1-2.5j</text>");
    expect_picture(grd_conj(z), 1, 1, 0,
                   "is storage cell 0</title><rect width=\"62\" height=\"42\" rx=\"6\" fill=\"#c7b8f5\"/>"
                   "<text x=\"31\" y=\"13\" font-size=\"10\">0</text><text x=\"31\" y=\"31\">1+2.5j</text>");
    expect_picture(grd_from_data(&large, grd_dims(1), GRD_UINT64), 1, 1, 0, ">18446744073709551615</text>");
    expect_picture(grd_to(iota(grd_dims(2)), .dtype = GRD_BOOL), 2, 2, 0, ">False</text>");
    expect_picture(grd_to(iota(grd_dims(2)), .dtype = GRD_INT8), 2, 2, 0, ">1</text>");
    expect_picture(grd_empty(grd_dims(2, 3), .device = GRD_META), 6, 6, 0, "float32, values not read</text>");
}

static void large_tensors_are_drawn_without_their_middle(void **state)
{
    (void)state;
    const grd_print_options before = grd_print_options_get();
    expect_picture(grd_zeros(grd_dims(40, 50)), 36, 36, 13 + 7, "tensor: 2000 elements");
    expect_picture(grd_zeros(grd_dims(7, 500)), 42, 42, 7 + 7, "storage cells 3 to 496");
    expect_picture(grd_zeros(grd_dims(7, 7, 7, 7)), 7 * 7 * 7 * 7, 7 * 7 * 7 * 7, 0, "[6, 6, 6, 6]: 0 + 6·343 + 6·49 + 6·7 + 6·1");
    expect_picture(grd_slice(grd_zeros(grd_dims(2000)), .start = 1000, .end = 1002), 2, 2, 2, "storage cells 1002 to 1999");
    grd_print_options_set((grd_print_options){.threshold = 3, .edge = 1});
    expect_picture(iota(grd_dims(5)), 2, 2, 1 + 1, "[4]: 0 + 4·1");
    grd_print_options_set((grd_print_options){.threshold = 3, .edge = 0});
    expect_picture(iota(grd_dims(5)), 0, 0, 1 + 1, "storage cells 0 to 4");
    grd_print_options_set((grd_print_options){.threshold = INT64_MAX});
    expect_picture(grd_slice(iota(grd_dims(5000)), .end = 2), 2, 2, 1, "storage cells 2 to 4999");
    grd_print_options_set(before);
}

static void draw_strides_refuses_null_and_too_many_elements(void **state)
{
    (void)state;
    const int64_t sizes[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    assert_null(grd_draw_strides(NULL));
    expect_error(GRD_ERROR_TYPE, "grd_draw_strides: argument 't' must be a tensor, not NULL");
    assert_null(grd_draw_strides(grd_zeros(grd_dims_from(sizes, 13))));
    expect_error(GRD_ERROR_RUNTIME,
                 "grd_draw_strides: argument 't' of sizes [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2] has more than 4096 elements to draw: "
                 "draw a slice of it, or let the print options omit more elements");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(the_complete_svg_of_a_reversed_slice),
        IN_SCOPE(views_draw_the_cells_that_they_read),
        IN_SCOPE(elements_are_drawn_as_text),
        IN_SCOPE(large_tensors_are_drawn_without_their_middle),
        IN_SCOPE(draw_strides_refuses_null_and_too_many_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
