/* Defines the switches that turn off the faster ways to run operators or compute gradients, and sets one of them from the environment. */
#include "core/shortcuts.h"

#include <stdlib.h>
#include <string.h>

bool grd_shortcuts = true;
bool grd_accelerations = true;

void grd_shortcuts_init(void)
{
    const char *wanted = getenv("GRADUS_SHORTCUTS");
    grd_shortcuts = wanted == NULL || strcmp(wanted, "off") != 0;
}
