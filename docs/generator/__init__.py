"""Makes the pages of the documents that follow from the code: the reference of C and of Python, what is missing, examples, benchmarks."""
