/* Defines GRD_HIDDEN, the mark of variables that several files of the library use but that the library does not export. */
#ifndef GRD_BASE_HIDDEN_H
#define GRD_BASE_HIDDEN_H

/* The compiler addresses a marked variable directly, without the global offset table. Builds with a sanitizer define GRD_SHOW_ALL: they export every
 * symbol, so that all test programs share the library and need not contain it. */
#ifdef GRD_SHOW_ALL
#define GRD_HIDDEN
#else
#define GRD_HIDDEN __attribute__((visibility("hidden")))
#endif

#endif
