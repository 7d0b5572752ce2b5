/* Generated from schema by codegen. Do not edit. */
#pragma once

#define GRD_WORDS_REDUCTION "\"none\", \"mean\" or \"sum\""
#define GRD_WORDS_MEMORY_FORMAT "\"preserve\", \"contiguous\", \"channels_last\" (of 4 dimensions) or \"channels_last_3d\" (of 5)"
#define GRD_WORDS_ROUNDING_MODE "\"trunc\" or \"floor\"; absent: not rounded"
#define GRD_WORDS_SCALED_TANH_MODE "\"tanh\" or \"none\""
