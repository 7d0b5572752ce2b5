/* Reads digits.csv: 1,797 handwritten digits, one on each line, as 64 pixels from 0 to 16 followed by the digit. */
#ifndef GRADUS_EXAMPLES_DATA_DIGITS_H
#define GRADUS_EXAMPLES_DATA_DIGITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { IMAGES = 1797, PIXELS = 64, DIGITS = 10 };

/* Reads the pixels of each image, scaled to the range 0 to 1, and its digit. Returns false, with a message on standard error, if the file cannot be
 * opened or a line does not consist of 64 pixels and a digit. */
static inline bool read_digits(const char *path, float (*ret_images)[PIXELS], int64_t *ret_labels)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        return false;
    }
    int line = 0, found = PIXELS + 1;
    while (line < IMAGES && found == PIXELS + 1) {
        int value = 0;
        found = 0;
        for (int k = 0; k < PIXELS; k++) {
            found += fscanf(file, "%d,", &value);
            ret_images[line][k] = (float)value / 16;
        }
        found += fscanf(file, "%d", &value);
        ret_labels[line++] = value;
    }
    fclose(file);
    if (found != PIXELS + 1)
        fprintf(stderr, "%s: line %d is not %d pixels and a digit\n", path, line, PIXELS);
    return found == PIXELS + 1;
}

#endif
