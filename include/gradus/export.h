/* Defines the headers' version, and macros for C linkage, symbol visibility and format attributes. Every public header includes this file. */
#ifndef GRADUS_EXPORT_H
#define GRADUS_EXPORT_H

/* The version of these headers. The build reads the version from this line. */
#define GRD_VERSION "0.1.0"

#ifdef __cplusplus
#define GRD_BEGIN_DECLS extern "C" {
#define GRD_END_DECLS }
#else
#define GRD_BEGIN_DECLS
#define GRD_END_DECLS
#endif

#if defined(__GNUC__)
#define GRD_API __attribute__((visibility("default")))
#define GRD_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define GRD_API
#define GRD_PRINTF(at, first)
#endif

#endif
