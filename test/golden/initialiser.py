"""Our initialiser in numpy: what element i of a parameter starts as.

The value depends on the seed, the parameter's name and the element's index in
the full tensor alone. Philox4x32-10 is keyed with seed XOR fnv1a64(name) and
counts (index, attempt); Box-Muller makes a normal value of its first two
words. A value beyond the cut is drawn again with the next attempt.
"""

import numpy as np

MASK32 = np.uint64(0xFFFFFFFF)


def fnv1a64(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def philox4x32_10(counter, key):
    """Salmon et al., 2011. Four counter words (arrays) and two key words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (
            (p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0),
            p1 & MASK32,
            (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1),
            p0 & MASK32,
        )
        k0 = (k0 + 0x9E3779B9) % 2**32
        k1 = (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


def draw(index, attempt, seed, name):
    """Two uniform values in (0, 1) for each index."""
    key = seed ^ fnv1a64(name)
    zero = np.zeros_like(index)
    counter = (index & MASK32, index >> np.uint64(32), zero + np.uint64(attempt), zero)
    x0, x1, _, _ = philox4x32_10(counter, (key % 2**32, key >> 32))
    return (x0.astype(np.float64) + 0.5) / 2.0**32, (x1.astype(np.float64) + 0.5) / 2.0**32


def normal(name, shape, seed, std, cut=0.0):
    """Normal values of deviation `std`, none beyond `cut` deviations (0: all)."""
    z = np.empty(int(np.prod(shape)))
    todo = np.arange(z.size, dtype=np.uint64)
    attempt = 0
    while todo.size:
        u1, u2 = draw(todo, attempt, seed, name)
        drawn = np.sqrt(-2 * np.log(u1)) * np.cos(2 * np.pi * u2)
        z[todo] = drawn
        todo = todo[np.abs(drawn) > cut] if cut else todo[:0]
        attempt += 1
    return (std * z).astype(np.float32).reshape(shape)


# The published test vector of Philox4x32-10 for counter and key of zeros.
assert [int(x[0]) for x in philox4x32_10([np.zeros(1, np.uint64)] * 4, (0, 0))] == [
    0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
