"""Internals of DataLoader: collation of samples, fetching of samples, and the main loop of worker processes."""
