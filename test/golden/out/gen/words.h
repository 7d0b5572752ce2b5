/* Generated from schema by codegen. Do not edit. */
#pragma once

#define GRD_WORDS_REDUCTION "\"none\", \"mean\" or \"sum\""
#define GRD_WORDS_MEMORY_FORMAT "\"preserve\", \"contiguous\" or \"channels_last\""
#define GRD_WORDS_ROUNDING_MODE "\"trunc\" or \"floor\"; absent: not rounded"
#define GRD_WORDS_SCALED_TANH_MODE "\"tanh\" or \"none\""
