/* Shows what happens to a program that reads the memory of a plug-in's device directly.
 *
 *     peek vault.so copy|raw
 *
 * With "copy" the program asks the library for an element, and the library copies the element with the device's function. With "raw" the program
 * dereferences the address and is ended by SIGSEGV. */
#include <stdio.h>
#include <string.h>

#include <gradus/gradus.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: peek vault.so copy|raw\n");
        return 1;
    }
    grd_load_library(argv[1]);
    grd_tensor *x = grd_add_scalar(grd_ones(grd_dims(2), .device = grd_device_find("vault")), grd_int(1));
    grd_print(x);
    if (!grd_ok()) {
        fprintf(stderr, "%s\n", grd_error_message());
        return 1;
    }
    if (strcmp(argv[2], "raw") == 0)
        printf("the first element is %g\n", (double)*(volatile float *)grd_data(x));
    else
        printf("the first element is %g\n", grd_item_double(grd_select(x, 0, 0)));
    return 0;
}
