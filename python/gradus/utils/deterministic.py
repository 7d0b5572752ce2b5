"""Settings of deterministic algorithms."""

# Accepted; what gradus.empty gives is not filled.
fill_uninitialized_memory = True
