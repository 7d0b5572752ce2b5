/* Gives a test program a temporary working directory: enter_folder creates it and changes to it, leave_folder changes back and removes it.
 * Tests therefore name their files by relative paths. */
#ifndef GRD_TEST_FOLDER_H
#define GRD_TEST_FOLDER_H

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

static char home[1024], folder[] = "/var/tmp/gradus-XXXXXX";

static inline int enter_folder(void **state)
{
    (void)state;
    return getcwd(home, sizeof home) != NULL && mkdtemp(folder) != NULL ? chdir(folder) : -1;
}

/* Changes back to the former working directory and removes the temporary one. Fails if a test left a file in it. */
static inline int leave_folder(void **state)
{
    (void)state;
    return chdir(home) == 0 ? rmdir(folder) : -1;
}

static inline int count_files(void)
{
    int n = -2; /* the entries "." and ".." are not counted */
    DIR *listing = opendir(".");
    assert_non_null(listing);
    while (readdir(listing) != NULL)
        n++;
    closedir(listing);
    return n;
}

#endif
