/* Moves the unwind tables of a source file into its debug information. Files of kernels and of generated functions include this header. Only
 * debuggers need these tables, because no exception passes through kernels or generated functions: no kernel calls user code, and a callback must
 * return normally (gradus/runtime.h). A library without debug information becomes a tenth smaller in this way. */
#ifndef GRD_BASE_FRAMES_H
#define GRD_BASE_FRAMES_H

#ifdef __linux__
__asm__(".cfi_sections .debug_frame");
#endif

#endif
