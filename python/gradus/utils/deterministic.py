"""Settings for deterministic algorithms."""

# Accepted for PyTorch, without effect: results of gradus.empty are not filled.
fill_uninitialized_memory = True
