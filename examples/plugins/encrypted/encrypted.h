/* Encrypted tensors: int64 numbers that are encrypted with a one-time pad. They are implemented outside of the library.
 *
 * An encrypted tensor holds two tensors: the mask, and the masked words, which are the numbers plus the mask modulo 2^64. Each of these two
 * tensors alone is noise. Linear operators (sums, differences, multiples, products with unencrypted matrices, and views) are applied to both tensors
 * without decrypting anything. */
#ifndef ENCRYPTED_H
#define ENCRYPTED_H

#include <gradus/gradus.h>

/* Returns a new encrypted tensor with the numbers in an int64 CPU tensor. Raises TypeError for any other tensor, and OSError if the system gives
 * no random bytes. */
GRD_API grd_tensor *encrypted_from(grd_tensor *plain);
/* Returns the decrypted numbers. Raises TypeError if the tensor is not encrypted. */
GRD_API grd_tensor *encrypted_reveal(grd_tensor *t);
/* Returns the masked words, which anybody may see. Raises TypeError if the tensor is not encrypted. */
GRD_API grd_tensor *encrypted_masked(grd_tensor *t);

#endif
