/* The training step of the network in micro.c, written in C loops without a tensor library. It shows how long a step takes if every loop is
 * written by hand. A layer computes
 *
 *     h = relu(x W^T + b)
 *
 * where x has the shape (BATCH, inputs) and W the shape (outputs, inputs), both row-major. The last layer omits relu. The loss is the mean cross
 * entropy. AdamW updates the parameters. */
#include "by_hand.h"

#include <math.h>
#include <string.h>

enum { BATCH = 16, LAYERS = 3, WIDEST = 64 };
static const int WIDTHS[LAYERS + 1] = {64, 32, 32, 10};

struct parameter {
    float value[WIDEST * WIDEST], grad[WIDEST * WIDEST], mean[WIDEST * WIDEST], square[WIDEST * WIDEST];
};

static struct parameter weights[LAYERS], biases[LAYERS];
static float activations[LAYERS + 1][BATCH * WIDEST], gradients[LAYERS + 1][BATCH * WIDEST];
static int labels[BATCH], steps;

/* Fills an array with `n` numbers between -scale and scale. They come from a linear congruential generator, because the quality of the random
 * numbers does not matter here. */
static void fill(float *values, int n, float scale)
{
    static unsigned state = 1;
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = scale * ((float)(state >> 8) / (float)(1 << 23) - 1);
    }
}

void by_hand_prepare(void)
{
    fill(activations[0], BATCH * WIDTHS[0], 1);
    for (int layer = 0; layer < LAYERS; layer++) {
        fill(weights[layer].value, WIDTHS[layer] * WIDTHS[layer + 1], 0.1f);
        fill(biases[layer].value, WIDTHS[layer + 1], 0.1f);
    }
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % WIDTHS[LAYERS];
}

/* Computes the outputs of a layer, out[o] = b[o] + sum over i of in[i] * W[o][i], for each row of the batch. In hidden layers negative outputs
 * become zero (ReLU). */
static void forward(int layer)
{
    const int inputs = WIDTHS[layer], outputs = WIDTHS[layer + 1];
    for (int row = 0; row < BATCH; row++) {
        const float *in = activations[layer] + row * inputs;
        float *out = activations[layer + 1] + row * outputs;
        for (int o = 0; o < outputs; o++) {
            float sum = biases[layer].value[o];
            for (int i = 0; i < inputs; i++)
                sum += in[i] * weights[layer].value[o * inputs + i];
            out[o] = layer + 1 < LAYERS && sum < 0 ? 0 : sum;
        }
    }
}

/* Computes the gradient of the loss with respect to the logits, (softmax(logits) - one_hot(label)) / BATCH, for each row of the batch. */
static void loss_gradient(void)
{
    const int classes = WIDTHS[LAYERS];
    for (int row = 0; row < BATCH; row++) {
        const float *logits = activations[LAYERS] + row * classes;
        float *grad = gradients[LAYERS] + row * classes, largest = logits[0], sum = 0;
        for (int c = 1; c < classes; c++)
            largest = fmaxf(largest, logits[c]);
        for (int c = 0; c < classes; c++)
            sum += grad[c] = expf(logits[c] - largest);
        for (int c = 0; c < classes; c++)
            grad[c] = (grad[c] / sum - (c == labels[row])) / BATCH;
    }
}

/* Computes the gradients of a layer from the gradient `dout` of its outputs: dW[o][i] = sum over rows of dout[o] * in[i] and db[o] = sum over
 * rows of dout[o]. The gradient of the inputs is din[i] = sum over o of dout[o] * W[o][i] if in[i] > 0, otherwise 0. */
static void backward(int layer)
{
    const int inputs = WIDTHS[layer], outputs = WIDTHS[layer + 1];
    memset(weights[layer].grad, 0, sizeof(float) * (size_t)(inputs * outputs));
    memset(biases[layer].grad, 0, sizeof(float) * (size_t)outputs);
    memset(gradients[layer], 0, sizeof gradients[layer]);
    for (int row = 0; row < BATCH; row++) {
        const float *in = activations[layer] + row * inputs, *grad_out = gradients[layer + 1] + row * outputs;
        float *grad_in = gradients[layer] + row * inputs;
        for (int o = 0; o < outputs; o++) {
            biases[layer].grad[o] += grad_out[o];
            for (int i = 0; i < inputs; i++) {
                weights[layer].grad[o * inputs + i] += grad_out[o] * in[i];
                grad_in[i] += grad_out[o] * weights[layer].value[o * inputs + i];
            }
        }
        for (int i = 0; i < inputs; i++)
            grad_in[i] = in[i] > 0 ? grad_in[i] : 0;
    }
}

/* Updates a parameter with `n` elements as torch.optim.AdamW(lr=1e-3) does. */
static void update(struct parameter *p, int n)
{
    const float lr = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, decay = 0.01f;
    const float correction1 = 1 - powf(beta1, (float)steps), correction2 = 1 - powf(beta2, (float)steps);
    for (int i = 0; i < n; i++) {
        p->mean[i] = beta1 * p->mean[i] + (1 - beta1) * p->grad[i];
        p->square[i] = beta2 * p->square[i] + (1 - beta2) * p->grad[i] * p->grad[i];
        p->value[i] = p->value[i] * (1 - lr * decay) - lr / correction1 * p->mean[i] / (sqrtf(p->square[i] / correction2) + eps);
    }
}

void by_hand_step(void)
{
    for (int layer = 0; layer < LAYERS; layer++)
        forward(layer);
    loss_gradient();
    for (int layer = LAYERS - 1; layer >= 0; layer--)
        backward(layer);
    steps++;
    for (int layer = 0; layer < LAYERS; layer++) {
        update(&weights[layer], WIDTHS[layer] * WIDTHS[layer + 1]);
        update(&biases[layer], WIDTHS[layer + 1]);
    }
}
