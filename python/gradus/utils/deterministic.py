"""Settings of deterministic algorithms."""

# Accepted; results of gradus.empty are not filled.
fill_uninitialized_memory = True
