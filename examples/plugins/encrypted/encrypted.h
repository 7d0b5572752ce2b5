/* Encrypted tensors: int64 numbers behind a one-time pad, outside the library.
 *
 * Such a tensor holds two tensors: the masked words, and the mask that was added to them, modulo 2^64. Each alone is noise. What is linear can be
 * computed on both without ever adding them up: sums, differences, multiples, products with plain matrices, views. */
#ifndef ENCRYPTED_H
#define ENCRYPTED_H

#include <gradus/gradus.h>

/* A new encrypted tensor of a plain int64 cpu tensor. TypeError for other tensors; OSError when there is no randomness. */
GRD_API grd_tensor *encrypted_from(grd_tensor *plain);
/* The numbers. TypeError for a tensor that is not encrypted. */
GRD_API grd_tensor *encrypted_reveal(grd_tensor *t);
/* The masked words: what a stranger may see. TypeError likewise. */
GRD_API grd_tensor *encrypted_masked(grd_tensor *t);

#endif
