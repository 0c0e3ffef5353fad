"""Rows that hold every combination of a few choices, in place of all rows."""
import itertools


def rows_covering(factors, strength):
    """Rows of {name: value} that hold every combination of values of `strength`
    factors, made greedily: the first rows hold the most."""
    names = list(factors)
    rows = [dict(zip(names, values))
            for values in itertools.product(*factors.values())]

    def held(row):
        return {frozenset(some)
                for some in itertools.combinations(row.items(), strength)}

    open_ones = set().union(*map(held, rows))
    chosen = []
    while open_ones:
        best = max(rows, key=lambda row: len(held(row) & open_ones))
        open_ones -= held(best)
        chosen.append(best)
    return chosen
