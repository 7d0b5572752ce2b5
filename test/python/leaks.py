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

    rounds = []
    for _ in range(ROUNDS):
        before = measure()
        for _ in range(CALLS):
            call()
        rounds.append([(after - start) // CALLS for start, after in zip(before, measure())])
    return max(min(column) for column in zip(*rounds))
