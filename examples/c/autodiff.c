/* Runs the recurrent step of the talk "PyTorch internals". The graph is built while the program runs, and is then traversed backward.
 *
 *     i2h = W_x x^T;  h2h = W_h h^T;  next_h = tanh(i2h + h2h);  loss = sum(next_h) */
#include <stdio.h>

#include <gradus/gradus.h>

/* Prints `node` and the nodes that it leads to, one on each line, indented by the distance from the loss. */
static void print_graph(grd_node *node, int depth)
{
    grd_tensor *leaf = grd_node_variable(node);
    printf("%*s%s", 2 * depth, "", grd_node_name(node));
    if (leaf != NULL)
        printf(" of a leaf [%lld, %lld]", (long long)grd_size(leaf, 0), (long long)grd_size(leaf, 1));
    printf("\n");
    for (int i = 0; i < grd_node_edge_count(node); i++) {
        grd_node *next = grd_node_edge(node, i, NULL);
        if (next != NULL)
            print_graph(next, depth + 1);
    }
}

int main(void)
{
    grd_scope scope = grd_scope_open();
    grd_manual_seed(0);
    grd_tensor *x = grd_randn(grd_dims(1, 10));
    grd_tensor *prev_h = grd_randn(grd_dims(1, 20));
    grd_tensor *W_h = grd_randn(grd_dims(20, 20), .requires_grad = true);
    grd_tensor *W_x = grd_randn(grd_dims(20, 10), .requires_grad = true);

    grd_tensor *i2h = grd_mm(W_x, grd_t(x));
    grd_tensor *h2h = grd_mm(W_h, grd_t(prev_h));
    grd_tensor *next_h = grd_tanh(grd_add(i2h, h2h));
    grd_tensor *loss = grd_sum(next_h);

    printf("the graph, from the loss to the leaves:\n");
    print_graph(grd_grad_fn(loss), 1);

    grd_backward(loss);
    printf("\nloss: ");
    grd_print(loss);
    printf("\nd loss / d W_x, its first row:\n");
    grd_print(grd_select(grd_grad_of(W_x), 0, 0));
    printf("\nd loss / d W_h, its first row:\n");
    grd_print(grd_select(grd_grad_of(W_h), 0, 0));

    const bool ok = grd_ok();
    if (!ok)
        fprintf(stderr, "error: %s\n", grd_error_message());
    grd_scope_close(scope);
    return ok ? 0 : 1;
}
