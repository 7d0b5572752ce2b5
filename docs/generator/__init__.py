"""Generates the pages of the documentation that follow from the code: the references of C and Python, what is missing, examples, benchmarks."""
