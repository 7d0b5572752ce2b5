"""Measures lost references and blocks of memory."""
import gc
import sys

ROUNDS, CALLS = 4, 200


def lost(call, *objects):
    """Returns how many blocks of memory and references to the objects each call leaks. A leak grows in every round, whereas caches and free lists
    grow in some rounds only, so the smallest growth is taken."""
    def measure():
        gc.collect()
        return [sys.getallocatedblocks(), *(sys.getrefcount(thing) for thing in objects)]

    gc.freeze()  # The collector need not visit existing objects.
    counts = [measure()]
    for _ in range(ROUNDS):
        for _ in range(CALLS):
            call()
        counts.append(measure())
    gc.unfreeze()
    rounds = [[(after - before) // CALLS for before, after in zip(*pair)] for pair in zip(counts, counts[1:])]
    return max(min(column) for column in zip(*rounds))
