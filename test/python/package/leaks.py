"""What tests of lost references share."""
import gc
import sys

ROUNDS, CALLS = 4, 200


def lost(call, *objects):
    """How many blocks of memory and references to the objects every call leaves behind. What is lost is lost in each round: caches and free
    lists grow in some."""
    def measure():
        gc.collect()
        return [sys.getallocatedblocks(), *(sys.getrefcount(thing) for thing in objects)]

    gc.freeze()  # What is there already needs not be looked at.
    counts = [measure()]
    for _ in range(ROUNDS):
        for _ in range(CALLS):
            call()
        counts.append(measure())
    gc.unfreeze()
    rounds = [[(after - before) // CALLS for before, after in zip(*pair)] for pair in zip(counts, counts[1:])]
    return max(min(column) for column in zip(*rounds))
