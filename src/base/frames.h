/* Moves the unwind tables of a source file into its debug information. Files of kernels and of generated functions include this header. Only
 * debuggers need these tables, because no exception passes through such functions: no kernel calls user code, and a callback must return normally
 * (gradus/runtime.h). Stripping the debug information then makes the library a tenth smaller. */
#ifndef GRD_BASE_FRAMES_H
#define GRD_BASE_FRAMES_H

#ifdef __linux__
__asm__(".cfi_sections .debug_frame");
#endif

#endif
