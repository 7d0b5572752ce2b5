/* A folder for the files of a test program, which names them without it: enter_folder and leave_folder around the tests. */
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

/* Fails where a file is left. */
static inline int leave_folder(void **state)
{
    (void)state;
    return chdir(home) == 0 ? rmdir(folder) : -1;
}

static inline int count_files(void)
{
    int n = -2; /* "." and ".." */
    DIR *listing = opendir(".");
    assert_non_null(listing);
    while (readdir(listing) != NULL)
        n++;
    closedir(listing);
    return n;
}

#endif
