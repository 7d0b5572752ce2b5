"""Measures references and blocks of memory that a call leaks."""
import gc
import sys

ROUNDS, CALLS = 4, 200


def lost(call, *objects):
    """Returns what a call leaks: [number of memory blocks, number of references to each of `objects`]. Runs several rounds of calls and takes the
    smallest growth of any round. Leaks grow in every round. Caches and free lists grow in some rounds only."""
    def measure():
        gc.collect()
        return [sys.getallocatedblocks(), *(sys.getrefcount(thing) for thing in objects)]

    gc.freeze()  # excludes existing objects from garbage collections, which makes the collections below fast
    counts = [measure()]
    for _ in range(ROUNDS):
        for _ in range(CALLS):
            call()
        counts.append(measure())
    gc.unfreeze()
    rounds = [[(after - before) // CALLS for before, after in zip(*pair)] for pair in zip(counts, counts[1:])]
    return max(min(column) for column in zip(*rounds))
