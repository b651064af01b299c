"""What a benchmark measured, as tests compare it: values, counts and hits by label and way."""

from ems.bench.scores import unpacked


def values(result, measure=""):
    """Label -> way -> value, of the metric or of another measure."""
    return {
        label: {way: row.value for way, row in ways.items()}
        for label, ways in result.labelled(measure).items()
    }


def means(result, measure=""):
    """Label -> the mean of its ways."""
    return {label: sum(of.values()) / len(of) for label, of in values(result, measure).items()}


def counts(result):
    """Label -> the number of sentences, the same in all ways and of all measures."""
    counted = {}
    for row in result.rows:
        assert counted.setdefault(result.label_of(row), row.count) == row.count
    return counted


def hits(row):
    """Of each sentence whether it counts, by the bits alone."""
    return unpacked(row.hits, row.count).tolist()


def by_direction(result):
    """Direction -> all that is said of it: its rows and its details."""
    return {
        name: ([row for row in result.rows if row.direction == name], details)
        for name, details in result.details.items()
    }
