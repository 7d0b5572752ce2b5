/* Encrypted tensors: int64 numbers encrypted with a one-time pad, implemented outside of the library.
 *
 * Such a tensor holds two tensors: the mask, and the masked words, which are the numbers plus the mask modulo 2^64. Each of the two alone is noise.
 * Linear operators can be applied to both without decrypting them: sums, differences, multiples, products with unencrypted matrices, views. */
#ifndef ENCRYPTED_H
#define ENCRYPTED_H

#include <gradus/gradus.h>

/* Returns a new encrypted tensor of the numbers in an int64 cpu tensor. TypeError: another tensor. OSError: the system gives no random bytes. */
GRD_API grd_tensor *encrypted_from(grd_tensor *plain);
/* Returns the decrypted numbers. TypeError: the tensor is not encrypted. */
GRD_API grd_tensor *encrypted_reveal(grd_tensor *t);
/* Returns the masked words, which anybody may see. TypeError: the tensor is not encrypted. */
GRD_API grd_tensor *encrypted_masked(grd_tensor *t);

#endif
