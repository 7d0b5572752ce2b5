/* Reads the debug modes in GRADUS_DEBUG. To add a mode, add a row to the table `modes`. */
#include "base/debug.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t grd_debug_modes;
int64_t grd_debug_least_mark;

static const struct {
    const char *word;
    enum grd_debug mode;
} modes[] = {
    {"lifetimes", GRD_DEBUG_LIFETIMES},
    {"races", GRD_DEBUG_RACES},
};

static void report_unknown(const char *word, size_t length)
{
    fprintf(stderr, "gradus: GRADUS_DEBUG: '%.*s' is not a mode; modes are:", (int)length, word);
    for (int i = 0; i < GRD_LENGTH(modes); i++)
        fprintf(stderr, " %s", modes[i].word);
    fprintf(stderr, "\n");
}

void grd_debug_init(void)
{
    const char *text = getenv("GRADUS_DEBUG");
    while (text != NULL && *text != '\0') {
        const size_t length = strcspn(text, ",");
        uint32_t mode = 0;
        for (int i = 0; i < GRD_LENGTH(modes); i++)
            if (strlen(modes[i].word) == length && memcmp(modes[i].word, text, length) == 0)
                mode = modes[i].mode;
        if (mode == 0 && length > 0)
            report_unknown(text, length);
        grd_debug_modes |= mode;
        text += length + (text[length] == ',');
    }
    if (grd_debugging(GRD_DEBUG_LIFETIMES))
        grd_debug_least_mark = INT64_MAX;
}
