"""The parts of DataLoader: collating samples, fetching them, the loop of a worker process."""
