"""Settings for deterministic algorithms."""

# Exists for compatibility with PyTorch and has no effect: gradus.empty never fills its result.
fill_uninitialized_memory = True
