/* Trains a gated recurrent network (GRU) on the letters of a song and lets it continue the song.
 *
 *     char_rnn [steps]
 *
 * The program shows how recurrent networks are used from C. One operator runs all time steps of all sequences, and its gradient is
 * backpropagation through time. A cell operator continues from a state one letter at a time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gradus/gradus.h>

static const char song[] =
    "one man went to mow, went to mow a meadow, one man and his dog, went to mow a meadow. "
    "two men went to mow, went to mow a meadow, two men, one man and his dog, went to mow a meadow. "
    "three men went to mow, went to mow a meadow, three men, two men, one man and his dog, went to mow a meadow. "
    "four men went to mow, went to mow a meadow, four men, three men, two men, one man and his dog, went to mow a meadow. ";

enum { LETTERS = 29, WIDTH = 16, HIDDEN = 64, LENGTH = 40, ROWS = 16, STEPS = 400, SHOWN = 50, SUNG = 120 };

/* ---- Letters ---------------------------------------------------------------------------------------------------------------------------- */

static const char alphabet[LETTERS + 1] = "abcdefghijklmnopqrstuvwxyz ,.";

static int64_t number_of(char letter)
{
    return strchr(alphabet, letter) - alphabet;
}

/* Returns ROWS parts of the song that begin at random positions, as letter numbers [LENGTH + 1, ROWS]. There is one letter more than the LENGTH
 * input letters, because the targets are the next letters. */
static grd_tensor *draw_pieces(void)
{
    static int64_t letters[LENGTH + 1][ROWS];
    int64_t places[ROWS];
    grd_to_memory(grd_randint(0, sizeof song - LENGTH - 1, grd_dims(ROWS)), places, GRD_INT64);
    for (int row = 0; row < ROWS && grd_ok(); row++)
        for (int i = 0; i <= LENGTH; i++)
            letters[i][row] = number_of(song[places[row] + i]);
    return grd_from_data(letters, grd_dims(LENGTH + 1, ROWS), GRD_INT64);
}

/* ---- Network ---------------------------------------------------------------------------------------------------------------------------- */

enum { TABLE, W_IH, W_HH, B_IH, B_HH, W_OUT, B_OUT, PARAMETERS };

struct network {
    grd_tensor *parameter[PARAMETERS];
    grd_optimizer *optimizer;
};

static grd_tensor *uniform_parameter(grd_dims sizes)
{
    const double bound = 1 / sqrt(HIDDEN);
    return grd_set_requires_grad(grd_keep(grd_uniform_(grd_empty(sizes), .from = -bound, .to = bound)), true);
}

static void network_init(struct network *net)
{
    net->parameter[TABLE] = uniform_parameter(grd_dims(LETTERS, WIDTH));
    net->parameter[W_IH] = uniform_parameter(grd_dims(3 * HIDDEN, WIDTH));
    net->parameter[W_HH] = uniform_parameter(grd_dims(3 * HIDDEN, HIDDEN));
    net->parameter[B_IH] = uniform_parameter(grd_dims(3 * HIDDEN));
    net->parameter[B_HH] = uniform_parameter(grd_dims(3 * HIDDEN));
    net->parameter[W_OUT] = uniform_parameter(grd_dims(LETTERS, HIDDEN));
    net->parameter[B_OUT] = uniform_parameter(grd_dims(LETTERS));
    net->optimizer = grd_adamw_new(grd_tensors_from(net->parameter, PARAMETERS), 1e-2);
}

static void network_done(struct network *net)
{
    grd_optimizer_drop(net->optimizer);
    for (int i = 0; i < PARAMETERS; i++)
        grd_drop(net->parameter[i]);
}

/* Returns the scores [LENGTH, ROWS, LETTERS] of each possible next letter, given letter numbers [LENGTH, ROWS]. */
static grd_tensor *network_forward(const struct network *net, grd_tensor *letters)
{
    grd_tensor *const *p = net->parameter, *state = grd_zeros(grd_dims(1, ROWS, HIDDEN));
    const grd_tensors weights = grd_tensors(p[W_IH], p[W_HH], p[B_IH], p[B_HH]);
    grd_tensor *read = grd_embedding(p[TABLE], letters);
    grd_tensor *output = grd_gru(read, state, weights, true, 1, 0, true, false, false).output;
    return grd_linear(output, p[W_OUT], .bias = p[B_OUT]);
}

static double train_step(struct network *net)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *pieces = draw_pieces();
    grd_tensor *scores = network_forward(net, grd_narrow(pieces, 0, 0, LENGTH));
    grd_tensor *loss = grd_cross_entropy(grd_flatten(scores, .end_dim = 1), grd_flatten(grd_narrow(pieces, 0, 1, LENGTH)));
    grd_backward(loss);
    grd_clip_grad_norm(grd_tensors_from(net->parameter, PARAMETERS), 1);
    grd_optimizer_step(net->optimizer);
    grd_optimizer_zero_grad(net->optimizer);
    const double value = grd_item_double(loss);
    grd_scope_close(scope);
    return value;
}

/* Prints `beginning` and the network's continuation of it. Each letter is drawn from the predicted distribution and is the next input. */
static void sing(const struct network *net, const char *beginning)
{
    grd_scope scope = grd_scope_open();
    const bool recording = grd_set_grad_enabled(false);
    grd_tensor *const *p = net->parameter, *state = grd_zeros(grd_dims(1, HIDDEN));
    const int given = (int)strlen(beginning);
    printf("    %s", beginning);
    int64_t letter = 0;
    for (int i = 0; i < SUNG && grd_ok(); i++) {
        letter = i < given ? number_of(beginning[i]) : letter;
        grd_tensor *read = grd_embedding(p[TABLE], grd_from_data(&letter, grd_dims(1), GRD_INT64));
        state = grd_gru_cell(read, state, p[W_IH], p[W_HH], .b_ih = p[B_IH], .b_hh = p[B_HH]);
        if (i + 1 < given)
            continue;
        letter = grd_item_int64(grd_multinomial(grd_softmax(grd_linear(state, p[W_OUT], .bias = p[B_OUT]), 1), 1));
        putchar(alphabet[letter]);
    }
    putchar('\n');
    grd_set_grad_enabled(recording);
    grd_scope_close(scope);
}

/* ---- The program ------------------------------------------------------------------------------------------------------------------------ */

static void show_progress(int step, int steps, double loss)
{
    enum { CELLS = 30 };
    const int filled = CELLS * step / steps;
    fprintf(stderr, "\r[%.*s%.*s] step %d/%d  loss %.3f%s", filled, "##############################", CELLS - filled,
            "..............................", step, steps, loss, step < steps ? "" : "\n");
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : STEPS;
    struct network net;
    grd_manual_seed(0);
    network_init(&net);
    printf("%zu letters of a song; before a step:\n", sizeof song - 1);
    sing(&net, "one man");
    double loss = 0;
    for (int step = 1; step <= steps && grd_ok(); step++) {
        loss = train_step(&net);
        if (step % SHOWN == 0 || step == steps)
            show_progress(step, steps, loss);
    }
    printf("after %d steps, loss %.3f:\n", steps, loss);
    sing(&net, "one man");
    sing(&net, "two men");
    network_done(&net);
    if (!grd_ok()) {
        fprintf(stderr, "error: %s\n", grd_error_message());
        return 1;
    }
    return 0;
}
