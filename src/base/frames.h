/* Included by files of kernels and of generated functions. The tables that unwind their frames are for debuggers alone, and go where debug information goes: a stripped
 * library, which does not have them, is smaller by a tenth. Nothing is thrown through them: no kernel calls anybody back, and a callback must return (gradus/runtime.h). */
#ifndef GRD_BASE_FRAMES_H
#define GRD_BASE_FRAMES_H

#ifdef __linux__
__asm__(".cfi_sections .debug_frame");
#endif

#endif
