#!/usr/bin/env python3
"""Computes what reports/ says of its records anew, by other means than the program: from the JSON lines alone.

    python3 scripts/recompute.py          # in a clone; Python 3.9 and nothing else, for TOML 3.11

Checked, number by number:
  - every figure of every record: median, quartiles, least and most, standard error, GB/s and percent of the copy from
    the samples, whether it met a criterion, and that what was taken off it is what was measured beside it;
  - every table between `<!-- lookback:begin NAME -->` and its end in reports/README.md, reports/h100/README.md and
    docs/*.md, cell by cell, with captions and the marks ≈ and ?;
  - the tables of index.html in reports/ and reports/h100/: the main ones of each record, all rows, and all figures
    without a criterion;
  - reports/targets-*.txt of today's targets, line by line;
  - that the committed sweep of the targets asks for all that their records measure;
  - every claim and reading of reports/claims.toml, and that every text that it names stands where it is said to.

Not checked: pictures (their titles are, in the table `figures`), the machines' facts in index.html, whether a series
should have met its noise criterion (the record says so, and marks follow from that), the tables of docs/lesson.md,
which count runs on the CPU device and have no record, and whether claims.toml says something of every figure in the
documents, which `lookback claims` does. Of traces the summaries are read and not computed from the recordings. What is
not recomputed is named.

Definitions are those of src/lab/measure/record.rs, reports/METHOD.md, src/lab/claims and src/lab/measure/targets,
formats those of src/lab/report. Exit code: 0 without a difference, 1 with one, 2 if something is missing or nothing
was checked.
"""

import gzip
import html
import json
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "reports"
# Of the GPU of today, and of the one before.
FOLDERS = [REPORTS, REPORTS / "h100"]
DASH = "–"
SHOWN = 30  # differences that are printed of one table

TYPES = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8, "f32": 4, "f64": 8, "f16": 2, "bf16": 2}
OPERATORS = ["sum", "product", "min", "max", "and", "or", "xor"]
MODES = ["inclusive", "exclusive", "inclusive-minus-input"]
FIGURES = ["cold", "stream", "graph", "latency", "behind", "call", "untracked-call"]
PROBLEMS = [
    "flat", "reverse", "reproducible", "rows", "reverse-rows", "strided-rows", "columns", "reverse-columns", "batched-columns",
    "reproducible-columns",
    "by-key", "head-flags", "offsets", "recurrence", "reverse-recurrence", "recurrence-columns", "reverse-recurrence-columns",
    "batched-recurrence", "reverse-batched-recurrence",
    "partition", "partition-most", "reduce-by-key", "totals-first", "select", "select-most", "unique", "unique-most",
    "run-length-encode", "non-trivial-runs", "nonzero", "sort", "sort-by-half", "sort-pairs", "histogram",
    "cumulated-histogram", "even-histogram", "histogram-between", "expand", "scatter",
]
RECURRENCES = {
    "recurrence", "reverse-recurrence", "recurrence-columns", "reverse-recurrence-columns", "batched-recurrence",
    "reverse-batched-recurrence",
}
LINES = {"rows": "rows", "reverse-rows": "rows", "strided-rows": "strided rows", "columns": "columns", "reverse-columns": "columns",
         "batched-columns": "columns", "reproducible-columns": "columns",
         "recurrence": "rows", "reverse-recurrence": "rows", "recurrence-columns": "columns",
         "reverse-recurrence-columns": "columns", "batched-recurrence": "columns", "reverse-batched-recurrence": "columns"}
OF_EACH = {"batched-columns", "batched-recurrence", "reverse-batched-recurrence"}  # of 8 matrices
WITH_OPERATOR = {"flat", "reverse", "reproducible", "rows", "reverse-rows", "strided-rows", "columns", "reverse-columns",
                 "batched-columns", "reproducible-columns", "by-key", "head-flags", "offsets", "reduce-by-key", "totals-first"}
BY_VALUES = {"select", "unique", "run-length-encode", "non-trivial-runs", "nonzero"}
HISTOGRAMS = {"histogram", "cumulated-histogram", "even-histogram", "histogram-between"}
NO_SCANS = {"sort", "sort-by-half", "sort-pairs", "expand", "scatter"} | HISTOGRAMS
BY_MOST_VALUES = {"select-most", "unique-most"}
FLOORS = {"copy", "reading"}
STOPS = {
    "noise": "noise criterion met", "plateau": "plateau", "two-peaks": "two peaks, the median between them",
    "maximum-samples": "maximum of samples, noise criterion not met", "time-out-too-few": "time-out: too few samples",
    "time-out-noise": "time-out: noise criterion not met", "reduced-clock": "clock reduced most of the time",
}


class Missing(Exception):
    """Something that the check needs is not there."""


# ---------------------------------------------------------------------------------------------------------------
# Numbers and how they are written.


def rounded(value, digits):
    """To so many digits, halves away from 0, as records are."""
    scale = 10.0**digits
    return math.copysign(math.floor(abs(value) * scale + 0.5), value) / scale


def quantile(ordered, share):
    """The sample below which a share of all lies, between neighbours linearly."""
    position = min(max(share, 0.0), 1.0) * (len(ordered) - 1)
    below, above = ordered[math.floor(position)], ordered[math.ceil(position)]
    return below + (above - below) * (position - math.floor(position))


def median_of(values):
    return quantile(sorted(values), 0.5) if values else None


def standard_error(ordered):
    """Of the median: by the ranks around it, of few samples by the quartiles (METHOD.md, "How many samples")."""
    count = len(ordered)
    if count < 40:
        return 1.2533 * (quantile(ordered, 0.75) - quantile(ordered, 0.25)) / 1.349 / math.sqrt(count)
    reach = math.sqrt(count) / (count - 1)
    return (quantile(ordered, 0.5 + reach) - quantile(ordered, 0.5 - reach)) / 4


def significant(value):
    digits = 0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 10 else 3
    return f"{value:.{digits}f}"


def is_power(n):
    return n > 0 and n & (n - 1) == 0


def format_size(n):
    """2^20, 2^16-1, 10^8, 1000."""
    for difference in (0, 1, -1, 5, -5):
        power = n + difference
        if is_power(power) and power >= 1024:
            exponent = power.bit_length() - 1
            return f"2^{exponent}" + (f"{-difference:+d}" if difference else "")
    exponent = len(str(n)) - 1
    return f"10^{exponent}" if exponent >= 4 and n == 10**exponent else str(n)


def format_power(n):
    """2²⁰, and 1000 as it is."""
    return "2" + str(n.bit_length() - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")) if is_power(n) else str(n)


def format_array(n, element):
    """The bytes of an array as 4 KiB, or n where they are no whole KiB."""
    size = n * TYPES[element]
    for name, unit in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size > 0 and size % unit == 0:
            return f"{size // unit} {name}"
    return f"n = {format_size(n)}"


def parse_size(text, element_bytes):
    """Elements of a size as sweeps and claims write it: 5000000, 2^20, 10M-1, or bytes of the array, 1GiB."""
    amount, change = re.fullmatch(r"([^+-]+)([+-]\d+)?", text.replace("_", "")).groups()
    factors = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "Gi": 1 << 30, "Mi": 1 << 20, "Ki": 1 << 10,
               "G": 10**9, "M": 10**6, "K": 1000, "k": 1000}
    unit = next((unit for unit in factors if amount.endswith(unit)), "")
    if "^" in amount:
        base, exponent = amount.split("^")
        elements = int(base) ** int(exponent)
    else:
        elements = round(float(amount[: len(amount) - len(unit)]) * factors.get(unit, 1))
    return elements // (element_bytes if unit.endswith("B") else 1) + int(change or 0)


def or_dash(value):
    return DASH if value is None else str(value)


def wrapped(text, width):
    lines = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


# ---------------------------------------------------------------------------------------------------------------
# Records: rows with medians of their own samples.


class Row:
    """A row; `times` are medians in nanoseconds and `rates` GB/s from the samples, `figures` what the record says of each."""

    def __init__(self, fields):
        self.fields = fields
        self.subject, self.kind, self.mode, self.status = (fields[name] for name in ("subject", "kind", "mode", "status"))
        self.element, self.operator, self.n, self.bytes = (fields[name] for name in ("element", "operator", "n", "bytes"))
        self.problem, self.input = fields.get("problem", "flat"), fields.get("input_element")
        self.segment, self.offsets = fields.get("segment_elements"), tuple(fields.get("offsets", (0, 0)))
        self.vt, self.block, self.chosen = fields["vt"], fields["block_threads"], fields.get("chosen_strategy")
        self.is_flat = self.problem == "flat" and self.input is None
        # Halves are scanned in f32, so that their scan is none of a single type.
        self.is_plain = self.is_flat and self.element not in ("f16", "bf16")
        self.point = (self.problem, self.element, self.operator, self.input, self.segment, self.n, self.offsets)
        self.figures, self.times, self.percents, self.rates = {}, {}, {}, {}

    def time(self, figure):
        """The median, if there is one above 0."""
        return self.times.get(figure) or None

    def frame(self, figure):
        return (self.figures.get(figure) or {}).get("empty_frame_ns") or 0.0

    def framed(self, figure):
        """The median as the events said it."""
        time = self.time(figure)
        return None if time is None else time + self.frame(figure)

    def is_trusted(self, figure):
        return self.figures[figure]["is_trusted"] if figure in self.figures else False


class Record:
    """A file of JSON lines. Samples are dropped once their figure was checked."""

    def __init__(self, path, check):
        self.folder, self.stem, self.file = path.parent, path.name.split(".")[0], path.name
        self.header, self.rows, self.points, self.call_times = None, [], [], None
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                (key, value), = json.loads(line).items()
                if key == "header":
                    self.header = value
                elif key == "row":
                    self.rows.append(self.read_row(value, check))
                elif key == "point":
                    self.points.append(value)
                    for name in ("empty_frame", "foreign_kernel", "sentinel"):
                        if value.get(name):
                            check.figure(f"{self.stem}, {name} of {value['element']} n={value['n']}", value[name], 0)
                elif key == "call_times":
                    self.call_times = value
        self.command = self.header["command"]
        self.compare_with_copies(check)

    def read_row(self, fields, check):
        row = Row(fields)
        for name in FIGURES:
            figure = fields.get(name.replace("-", "_"))
            if figure is not None:
                place = f"{self.stem}, {row.subject} {row.mode} {row.element} n={row.n} {name}"
                row.figures[name] = figure
                row.times[name], row.rates[name] = check.figure(place, figure, row.bytes)
        return row

    def compare_with_copies(self, check):
        """The percentages, and that what was taken off a figure is the median of what was measured beside it."""
        copies = {row.point: row for row in self.rows if row.subject == "memcpy"}
        beside = {}
        for point in self.points:
            key = (point.get("problem", "flat"), point["element"], point["operator"], point.get("input_element"),
                   point.get("segment_elements"), point["n"], tuple(point.get("offsets", (0, 0))))
            beside[key] = {"cold": point.get("empty_frame"), "behind": point.get("foreign_kernel")}
        for row in self.rows:
            copy = copies.get(row.point)
            for name, figure in row.figures.items():
                time, of_copy = row.time(name), copy.time(name) if copy else None
                place = f"{self.stem}, {row.subject} {row.mode} {row.element} n={row.n} {name}"
                if time and of_copy and figure["percent_of_copy"] is not None:
                    row.percents[name] = rounded(100.0 * of_copy / time, 2)
                    check.same(place, "percent_of_copy", figure["percent_of_copy"], row.percents[name])
                elif figure["percent_of_copy"] is not None:
                    check.differ(f"{place}: a percentage of a copy that is not there")
                frame = beside.get(row.point, {}).get(name)
                if frame and figure.get("empty_frame_ns") is not None:
                    check.same(place, "empty_frame_ns", figure["empty_frame_ns"], frame["median_ns"])

    def is_of_targets(self):
        return self.header["sweep"]["name"] == "targets"

    def process(self):
        """That of the sweep of today's targets; those of earlier targets knew none."""
        return self.header["sweep"].get("process")

    def is_judged(self):
        """Whether today's targets are looked up in it, together with the records of further processes."""
        return self.is_of_targets() and self.process() == 1

    def gpu(self):
        return self.header["machine"]["gpu"]

    def origin(self):
        commit = self.header["program"].get("git_commit")
        commit = f"commit {commit[:7]}, " if commit else ""
        return f"{self.gpu()}, {self.header['date'].split('T')[0]}, {commit}`{self.command}`"


class Check:
    """Figures against their samples."""

    def __init__(self):
        self.figures, self.numbers, self.differences = 0, 0, []

    def differ(self, text):
        self.differences.append(text)

    def same(self, place, name, stored, value):
        self.numbers += 1
        if stored is None or abs(stored - value) > 1e-9 * max(1.0, abs(value)):
            self.differ(f"{place}: {name} is {stored}, the samples say {value}")

    def figure(self, place, figure, size):
        """Returns median and rate, rounded as records are, and drops the samples."""
        samples = sorted(figure.pop("samples_ns"))
        figure["count"] = len(samples)
        if figure.get("unavailable") or not samples:
            if any(figure.get(name) is not None for name in ("median_ns", "gigabytes_per_second", "percent_of_copy")):
                self.differ(f"{place}: numbers without samples")
            return None, None
        self.figures += 1
        median = quantile(samples, 0.5)
        rate = rounded(size / median, 3)
        self.same(place, "median_ns", figure["median_ns"], rounded(median, 1))
        self.same(place, "lower_quartile_ns", figure["lower_quartile_ns"], rounded(quantile(samples, 0.25), 1))
        self.same(place, "upper_quartile_ns", figure["upper_quartile_ns"], rounded(quantile(samples, 0.75), 1))
        self.same(place, "minimum_ns", figure["minimum_ns"], samples[0])
        self.same(place, "maximum_ns", figure["maximum_ns"], samples[-1])
        self.same(place, "gigabytes_per_second", figure["gigabytes_per_second"], rate)
        if figure.get("standard_error_ns") is not None:
            self.same(place, "standard_error_ns", figure["standard_error_ns"], rounded(standard_error(samples), 1))
        if figure["is_trusted"] != (figure["stop"] in ("noise", "plateau", "two-peaks")):
            self.differ(f"{place}: trusted is {figure['is_trusted']}, and it ended by {figure['stop']}")
        return rounded(median, 1), rate


# ---------------------------------------------------------------------------------------------------------------
# What tables are made of.


class Table:
    """Caption, heads and cells, ours or those that stand in a document."""

    def __init__(self, caption, columns, rows):
        self.caption, self.columns, self.rows = caption, list(columns), [list(row) for row in rows]

    def explained(self):
        """With what its marks mean, where it has any."""
        cells = [cell for row in self.rows for cell in row]
        if any("≈" in cell for cell in cells):
            self.caption += " ≈: samples have two peaks, and the median lies somewhere between."
        if any("?" in cell for cell in cells):
            self.caption += " ?: no noise criterion was met."
        return self


def microseconds(row, figure):
    """The median with its mark: ? where no criterion was met, ≈ where samples have two peaks."""
    if row is None or row.time(figure) is None:
        return None
    text = significant(row.time(figure) / 1e3)
    if not row.is_trusted(figure):
        return text + "?"
    return "≈" + text if row.figures[figure]["stop"] == "two-peaks" else text


def is_variant(subject):
    parts = ("-64-bit-count", "-narrow-sum", "-synchronous", "-run-to-run")
    return any(part in subject for part in parts) or subject.startswith("copy-")


def offsets_text(offsets):
    return "" if offsets == (0, 0) else f"offsets {offsets[0]},{offsets[1]}"


def joined(*parts):
    return ", ".join(part for part in parts if part)


def least(items, key):
    """The first of the least of those that have a key."""
    items = [item for item in items if key(item) is not None]
    return min(items, key=key) if items else None


def unique(items):
    return list(dict.fromkeys(items))


class Family:
    """Flat scans of one type, operator, mode and alignment, with the copies beside them."""

    def __init__(self, row):
        self.element, self.operator, self.mode, self.offsets, self.rows = row.element, row.operator, row.mode, row.offsets, []

    @staticmethod
    def all(record):
        rows = [row for row in record.rows if row.kind != "bound" and row.is_plain]
        families = {}
        for row in rows:
            if row.mode is not None:
                families.setdefault((row.element, row.operator, row.offsets, row.mode), Family(row))
        for (element, operator, offsets, mode), family in families.items():
            family.rows = [row for row in rows if (row.element, row.operator, row.offsets) == (element, operator, offsets)
                           and row.mode in (None, mode)]
        return list(families.values())

    def rest(self):
        return joined(self.mode, offsets_text(self.offsets))

    def title(self):
        return f"{self.element} {self.operator}, {self.rest()}"

    def slug(self):
        offsets = "" if self.offsets == (0, 0) else f"-offsets-{self.offsets[0]}-{self.offsets[1]}"
        return f"{self.element}-{self.operator}-{self.mode}{offsets}"

    def measured(self):
        return [row for row in self.rows if row.status == "measured"]

    def sizes(self):
        return sorted({row.n for row in self.measured()})

    def subjects(self):
        return unique(row.subject for row in self.rows)

    def row(self, subject, n, figure):
        rows = [row for row in self.measured() if row.subject == subject and row.n == n]
        return least(rows, lambda row: row.time(figure))

    def best_peers(self, figure):
        best = {n: least([row for row in self.measured() if row.kind == "peer" and row.n == n], lambda row: row.time(figure))
                for n in self.sizes()}
        return {n: row for n, row in best.items() if row}


# ---------------------------------------------------------------------------------------------------------------
# The main table of a record.


def main_table(record, records):
    """What stands for a record; nothing for one of earlier targets or of a further process."""
    if record.is_of_targets():
        return targets_table(record, records) if record.is_judged() else None
    if any(not row.is_plain for row in record.rows):
        return problem_lines(record).explained()
    families = Family.all(record)
    vts = {}
    for row in record.rows:
        if row.vt is not None and row.kind != "bound":
            vts.setdefault((row.subject, row.point, row.mode), set()).add(row.vt)
    if any(len(of_one) > 1 for of_one in vts.values()):
        table = best_vts(record, families)
    elif any(len(family.sizes()) >= 5 for family in families):
        table = by_size(record, families)
    elif len({family.element for family in families}) > 1:
        table = by_type(record, families)
    elif len({row.n for row in record.rows}) == 1:
        table = one_size(record, families[0])
    else:
        table = by_size(record, families)
    return table.explained()


def newest_thrust(subjects):
    return max((name for name in subjects if name.startswith("thrust") and not is_variant(name)), default=None)


def by_size(record, families):
    sizes = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 30]

    def shown(family):
        present = family.subjects()
        cubs = sorted(name for name in present if name.startswith("cub-") and not is_variant(name))
        names = ["auto", "reduce-then-scan", "lookback", *cubs, newest_thrust(present), "memcpy"]
        return [name for name in names if name in present]

    def cells(family):
        return sum(row.n in sizes and row.subject in shown(family) for row in family.measured())

    family = max(families, key=cells)
    rows = []
    for n in sizes:
        for figure in ("cold", "stream", "graph"):
            texts = []
            for subject in shown(family):
                row = family.row(subject, n, figure)
                text = microseconds(row, figure)
                if text and subject != "memcpy" and figure in row.percents:
                    text += f" ({row.percents[figure]:.0f} %)"
                texts.append(text)
            if any(texts):
                rows.append([format_size(n), figure, *map(or_dash, texts)])
    caption = f"Median µs a scan (percent of the copy's speed), {family.title()}: {record.origin()}."
    return Table(caption, ["n", "figure", *shown(family)], rows)


def one_size(record, family):
    thrust, n = newest_thrust(family.subjects()), family.rows[0].n
    beside = family.row(thrust, n, "cold") if thrust else None
    rows = []
    for subject in family.subjects():
        cold = family.row(subject, n, "cold")
        times = [or_dash(microseconds(family.row(subject, n, figure), figure)) for figure in ("cold", "stream", "graph")]
        ratio = f"{cold.time('cold') / beside.time('cold'):.2f}" if cold and beside else DASH
        percent = f"{cold.percents['cold']:.1f}" if cold and "cold" in cold.percents else DASH
        if any(cell != DASH for cell in [*times, ratio, percent]):
            rows.append([subject, *times, ratio, percent])
    against = thrust or "Thrust"
    caption = (f"Median µs a scan of n = {format_size(n)} elements, {family.title()}, and how many times as long as {against} "
               f"it takes: {record.origin()}.")
    return Table(caption, ["subject", "cold, µs", "stream, µs", "graph, µs", f"cold, × {against}", "cold, % of copy"], rows)


CONFIGURATION = ["VT", "block", "access, B", "registers", "spill, B"]


def configuration(row):
    fields = ("vt", "block_threads", "access_bytes", "registers", "spill_bytes")
    return [or_dash(row.fields[field]) for field in fields]


def percent_text(row, figure):
    return f"{row.percents[figure]:.1f}" if row and figure in row.percents else None


def best_vts(record, families):
    rows = []
    for family in families:
        for subject in family.subjects():
            for n in sorted({row.n for row in family.rows}):
                for figure in ("cold", "graph"):
                    row = family.row(subject, n, figure)
                    if row and row.vt is not None:
                        rate = significant(row.bytes / row.time(figure))
                        rows.append([subject, figure, format_size(n), *configuration(row), microseconds(row, figure), rate,
                                     or_dash(percent_text(row, figure))])
    columns = ["strategy", "figure", "n", *CONFIGURATION, "µs", "GB/s", "% of copy"]
    return Table(f"The fastest VT and block size at each n: {record.origin()}.", columns, rows)


def by_type(record, families):
    subjects = unique(row.subject for family in families for row in family.rows)
    subjects = [subject for subject in subjects if not is_variant(subject) and subject != "memcpy"]
    rows = []
    for family in families:
        for n in sorted({row.n for row in record.rows}):
            cells = [percent_text(family.row(subject, n, "cold"), "cold") for subject in subjects]
            if any(cells):
                rows.append([family.title(), format_size(n), *map(or_dash, cells)])
    return Table(f"Percent of the copy's speed, cold: {record.origin()}.", ["scan", "n", *subjects], rows)


def types_text(row):
    return f"{row.element} of {row.input}" if row.input else row.element


def with_variant(row, *words):
    return joined(*words, row.mode if row.mode != "inclusive" else "", offsets_text(row.offsets))


def problem_text(row):
    return with_variant(row, row.problem, row.operator if row.problem in WITH_OPERATOR else "")


def configuration_text(row):
    vt = f"VT {row.vt}" if row.vt is not None else ""
    threads = f"{row.block} threads" if row.block is not None else ""
    return joined(row.chosen or row.subject, vt, threads)


def point_order(point):
    """As points are measured: by problem, type, operator, type of the input, segments, n, offsets."""
    problem, element, operator, loaded, segment, n, offsets = point
    place = list(TYPES).index
    return (PROBLEMS.index(problem), place(element), OPERATORS.index(operator), -1 if loaded is None else place(loaded),
            -1 if segment is None else segment, n, offsets)


class Points:
    """The measured rows of a record by their points."""

    def __init__(self, record):
        self.rows = {}
        for row in record.rows:
            if row.status == "measured":
                self.rows.setdefault(row.point, []).append(row)

    def scans(self):
        return [row for point in sorted(self.rows, key=point_order) for row in self.rows[point] if row.kind == "strategy"]

    def times_copy(self, row, figure):
        """In a graph by the faster of the copy's figures in a graph and on a stream."""
        copy = next((other for other in self.rows[row.point] if other.subject == "memcpy"), None)
        if copy is None or row.time(figure) is None:
            return None
        times = [copy.time(of) for of in (("graph", "stream") if figure == "graph" else (figure,))]
        times = [time for time in times if time]
        return row.time(figure) / min(times) if times else None

    def best_peer(self, row, figure):
        peers = [other for other in self.rows[row.point] if other.kind == "peer" and other.mode == row.mode]
        return least(peers, lambda peer: peer.time(figure))


def problem_lines(record):
    points, rows = Points(record), []

    def times(row, figure):
        ratio = points.times_copy(row, figure) if row else None
        return DASH if ratio is None else f"{ratio:.2f}"

    for row in points.scans():
        peer = points.best_peer(row, "graph")
        segment = None if row.segment is None else format_size(row.segment)
        rows.append([problem_text(row), types_text(row), configuration_text(row), or_dash(segment), format_size(row.n),
                     or_dash(microseconds(row, "graph")), times(row, "graph"), or_dash(microseconds(row, "cold")),
                     times(row, "cold"), or_dash(peer and peer.subject), times(peer, "graph")])
    caption = ("Median times, and how many times as long as the copy that moves as many bytes they are; in a graph by the faster "
               "of the copy's figures in a graph and on a stream. \"Segment\" is the length of a row or column, or of a run or "
               f"segment on average: {record.origin()}.")
    columns = ["problem", "types", "scan by", "segment", "n", "graph, µs", "graph, × copy", "cold, µs", "cold, × copy",
               "best peer, graph", "its × copy"]
    return Table(caption, columns, rows)


# ---------------------------------------------------------------------------------------------------------------
# The tables of all rows and of all figures without a criterion, which the page has.


def scan_text(row):
    """What is scanned: "f32 sum, rows of 512"."""
    kind = row.problem
    how = "reproducible " if kind.startswith("reproducible") else "reverse " if kind.startswith("reverse") else ""
    if kind in WITH_OPERATOR:
        scan = f"{row.element} {row.operator}"
    else:
        scan = f"{row.element} recurrence" if kind in RECURRENCES else f"{row.input or row.element} {kind}"
    totals = {"reduce-by-key": ", totals", "totals-first": ", totals first"}.get(kind, "")
    of = f" of {row.input}" if row.input and kind not in HISTOGRAMS | {"nonzero", "non-trivial-runs"} else ""
    if row.segment is None:
        segments = ""
    elif kind in LINES:
        segments = f", {LINES[kind]} of {row.segment}" + (" of each of 8 matrices" if kind in OF_EACH else "")
    elif kind in BY_VALUES:
        segments = f", one of {row.segment}"
    elif kind in BY_MOST_VALUES:
        segments = f", all but one of {row.segment}"
    else:
        segments = {"by-key": ", by key in runs of {}", "reduce-by-key": ", by key in runs of {}",
                    "totals-first": ", by key in runs of {}", "partition": ", by flags {} apart", "partition-most": ", by flags, gaps {} apart",
                    "head-flags": ", by head flags {} apart"}.get(kind, ", by offsets in segments of {}").format(row.segment)
    return how + scan + totals + of + segments


def auto_by_size(record):
    """A line for each problem of a type and a column for each size, or the other way round where there are more sizes."""
    points = Points(record)
    rows = [row for row in points.scans() if row.subject == "auto"]
    by_copy = not any(row.problem in NO_SCANS for row in rows)

    def show(row, figure):
        if not by_copy:
            return or_dash(microseconds(row, figure))
        ratio = points.times_copy(row, figure)
        return DASH if ratio is None else f"{ratio:.2f}" + ("" if row.is_trusted(figure) else "?")

    cells = {}
    for row in rows:
        peer = points.best_peer(row, "graph")
        beside = "" if peer is None else f" ({show(peer, 'graph')})"
        cells[with_variant(row, scan_text(row)), row.n] = f"{show(row, 'graph')}, {show(row, 'cold')}{beside}"
    labels, sizes = unique(with_variant(row, scan_text(row)) for row in rows), sorted({row.n for row in rows})
    if len(labels) < len(sizes):
        columns, body = labels, [[format_size(n)] + [cells.get((label, n), "") for label in labels] for n in sizes]
    else:
        columns, body = map(format_size, sizes), [[label] + [cells.get((label, n), "") for n in sizes] for label in labels]
    what = "Median µs that `auto` takes in a graph and"
    if by_copy:
        what = ("How many times as long as the copy that moves as many bytes `auto` takes in a graph (by the faster of the copy's "
                "figures in a graph and on a stream) and")
    caption = f"{what} behind the caches' overwriting, and in brackets the fastest peer in a graph: {record.origin()}."
    return Table(caption, ["", *columns], body).explained()


def all_rows(record):
    rows = []
    for row in record.rows:
        subject = f"{row.subject}: {row.chosen}" if row.chosen else row.subject
        result = {"measured": {"copy": "copied", "reading": "read"}.get(row.kind, "right"), "wrong": "WRONG",
                  "not-launchable": f"not launchable: {row.fields['reason'] or 'unknown'}",
                  "not-verified": "a bound, not verified"}[row.status]
        times = [or_dash(microseconds(row, figure)) for figure in ("cold", "stream", "graph", "latency")]
        # The page rounds what the record has rounded to 0.001 before.
        rate = significant(row.rates["cold"]) if row.rates.get("cold") is not None else None
        scan = joined(scan_text(row), row.mode or ("reading" if row.kind == "reading" else "copy"), offsets_text(row.offsets))
        rows.append([subject, scan, format_size(row.n), *configuration(row), *times, or_dash(rate),
                     or_dash(percent_text(row, "cold")), result])
    columns = ["subject", "scan", "n", *CONFIGURATION, "cold, µs", "stream, µs", "graph, µs", "latency, µs", "cold, GB/s",
               "cold, % of copy", "result"]
    return Table("Medians.", columns, rows).explained()


def row_key(row):
    chosen = [] if row.chosen else [
        f"VT {row.vt}" if row.vt is not None else "", f"{row.block} threads" if row.block is not None else "",
        *(row.fields[name] or "" for name in ("pattern", "composition", "descriptor", "tile_order"))]
    parts = [scan_text(row), f"n={row.n}", row.subject, row.mode or "", *chosen, offsets_text(row.offsets)]
    return " ".join(part for part in parts if part)


def not_trusted(record):
    rows = []
    for row in record.rows:
        for name in FIGURES:
            figure = row.figures.get(name)
            if figure and not figure.get("unavailable") and not figure["is_trusted"]:
                median = None if row.times[name] is None else significant(row.times[name] / 1e3)
                rows.append([row_key(row), name, or_dash(STOPS.get(figure["stop"])), or_dash(figure.get("not_met")),
                             str(figure["count"]), or_dash(median)])
    columns = ["configuration", "figure", "end", "in the way", "samples", "median, µs"]
    return Table("Figures that met no noise criterion.", columns, rows)


# ---------------------------------------------------------------------------------------------------------------
# Targets: of each its figures in the records of all processes, the worst, the middle, and how many reach it.

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIX, OTHERS = ("u8", "u16", "i32", "f32", "i64", "f64"), ("i8", "i16", "u32", "u64", "f16", "bf16")
DEVICE, BEHIND_AND_COLD = ("graph", "behind", "cold"), ("behind", "cold")
HOST_TARGETS = [("a call returns", 3.0), ("scanner, kernels kept", 20e3), ("scanner, empty cache", 150e3)]


class Target:
    def __init__(self, place, yardstick, threshold, figures=("graph",), types=SIX, operators=("sum",), modes=("inclusive",),
                 sizes=(256, 4 * GIB), arrays="at a boundary"):
        self.place, self.yardstick, self.threshold, self.figures = place, yardstick, threshold, figures
        self.types, self.operators, self.modes, self.sizes, self.arrays = types, operators, modes, sizes, arrays

    def covers(self, row):
        size, is_aligned = row.n * TYPES[row.element], row.offsets == (0, 0)
        lies = {"at a boundary": is_aligned, "whole vectors": is_aligned and size % 16 == 0, "off": not is_aligned}
        return (row.mode in self.modes and row.element in self.types and row.operator in self.operators
                and self.sizes[0] <= size <= self.sizes[1] and lies[self.arrays])

    def show(self, ratio):
        return f"{ratio:.2f} x" if self.yardstick == "CUB" else f"{100 * ratio:.1f} %"

    def demand(self):
        figures = "" if self.figures == DEVICE else ", ".join(self.figures) + ": "
        return f"{figures}{self.show(self.threshold)} {self.yardstick}"


BOTH = ("inclusive", "exclusive")
TARGETS = [
    Target("anywhere", "CUB", 1.1),
    Target("anywhere", "CUB", 1.05, ("behind",)),
    Target("anywhere", "CUB", 1.05, ("cold",)),
    Target("other types", "CUB", 1.1, types=OTHERS),
    Target("other types", "CUB", 1.05, BEHIND_AND_COLD, types=OTHERS),
    Target("exclusive", "CUB", 1.1, modes=("exclusive",)),
    Target("exclusive", "CUB", 1.05, BEHIND_AND_COLD, modes=("exclusive",)),
    Target("maximum", "CUB", 1.1, operators=("max",)),
    Target("maximum", "CUB", 1.05, BEHIND_AND_COLD, operators=("max",)),
    Target("<= 64 KiB", "CUB", 1.4, ("behind",), sizes=(0, 64 * KIB)),
    Target("<= 64 KiB", "CUB", 2.0, ("call",), sizes=(0, 64 * KIB)),
    Target("no notch", "an octave's ends", 0.9, DEVICE, arrays="whole vectors"),
    *(Target(place, "copy kernel", 1.0, DEVICE, modes=BOTH, sizes=(size, size), arrays="whole vectors")
      for place, size in (("64 MiB", 64 * MIB), ("256 MiB", 256 * MIB), ("1 GiB", GIB), ("4 GiB", 4 * GIB))),
    Target("any offsets", "aligned", 0.93, DEVICE, modes=BOTH, sizes=(4 * KIB, 1 << 63), arrays="off"),
]


class Finding:
    """A figure of a target at one place; `place` is (type, operator, n, offsets, mode, figure)."""

    def __init__(self, place, strategy=None, problem=None):
        self.place, self.strategy, self.problem = place, strategy, problem
        self.ratio = self.between = self.reference = self.bound = None
        self.passed = self.is_trusted = False

    def order(self):
        element, operator, n, offsets, mode, figure = self.place
        return (-math.inf if self.ratio is None else self.ratio, list(TYPES).index(element), OPERATORS.index(operator), n,
                offsets, MODES.index(mode), FIGURES.index(figure))

    def title(self):
        element, operator, n, offsets, mode, figure = self.place
        place = joined(f"{element} {operator}", format_array(n, element), mode, figure, offsets_text(offsets))
        who = ", by ".join(name for name in (self.strategy, self.reference) if name)
        return f"{place} ({who})" if who else place


class Places:
    """The usable flat rows of one record by subject and place."""

    def __init__(self, record):
        self.rows = {}
        for row in record.rows:
            if row.is_flat and row.status in ("measured", "not-verified"):
                key = (row.subject, row.element, row.operator, row.n, row.offsets, row.mode)
                self.rows.setdefault(key, []).append(row)
        self.peers = sorted({row.subject for row in record.rows if row.kind == "peer"})
        self.copies = sorted({row.subject for row in record.rows if row.kind == "copy"} - {"memcpy"})
        self.sizes = sorted({row.n for row in record.rows if row.subject == "auto"})

    def at(self, subject, place):
        element, operator, n, offsets, mode, _ = place
        mode = None if subject in self.copies else mode
        return self.rows.get((subject, element, operator, n, offsets, mode), [])

    def fastest(self, subjects, place):
        return least([row for subject in subjects for row in self.at(subject, place)], lambda row: row.time(place[5]))

    def lead(self, place):
        """How many times as fast as the best of CUB ours is."""
        ours, cub = self.fastest(["auto"], place), self.fastest(self.peers, place)
        return compared(cub, place, "CUB") / compared(ours, place, "CUB") if ours and cub else None

    def by_octave(self, place):
        """The lead at a place by the lower of those at two sizes an octave apart around it, of all pairs the worst."""
        element, operator, n, offsets, mode, figure = place
        lead, ratios = self.lead(place), []
        for low in self.sizes:
            if lead is not None and low < n < 2 * low:
                ends = [self.lead((element, operator, end, offsets, mode, figure)) for end in (low, 2 * low)]
                if None not in ends:
                    ratios.append(lead / min(ends))
        return min(ratios, default=None)


def compared(row, place, yardstick):
    """Beside CUB cold times count as the events said them; what a foreign kernel takes is part of no time."""
    return row.framed("cold") if place[5] == "cold" and yardstick == "CUB" else row.time(place[5])


def finding_of(target, row, place, places):
    finding = Finding(place, row.chosen)
    figure = row.figures.get(place[5])
    if row.status != "measured":
        finding.problem = (row.fields["reason"] or "it was not measured").splitlines()[0]
    elif row.time(place[5]) is None:
        finding.problem = (figure or {}).get("unavailable") or "the figure was not measured"
    elif target.yardstick == "an octave's ends":
        finding.ratio = places.by_octave(place)
        finding.is_trusted = row.is_trusted(place[5])
        return finding if finding.ratio is not None else None
    if finding.problem:
        return finding
    element, operator, n, _, mode, name = place
    if target.yardstick == "aligned":
        aligned = -(-n * TYPES[element] // 16) * 16 // TYPES[element]
        other = places.fastest(["auto"], (element, operator, aligned, (0, 0), mode, name))
    else:
        other = places.fastest(places.peers if target.yardstick == "CUB" else places.copies, place)
    if other is None:
        finding.problem = f"there is no figure of {target.yardstick} beside it"
        return finding
    time, of_other = (compared(one, place, target.yardstick) for one in (row, other))
    finding.ratio = of_other / time
    finding.reference = None if other.subject == "auto" else other.subject
    finding.is_trusted = row.is_trusted(name) and other.is_trusted(name)
    bounds = [bound for bound in places.at(f"{row.chosen}-without-waiting", place) if (bound.vt, bound.block) == (row.vt, row.block)]
    if bounds and bounds[0].time(name):
        bound = compared(bounds[0], place, target.yardstick)
        finding.bound = (of_other / bound, bound / time)
    if target.yardstick == "copy kernel":
        missing = [copy for copy in copy_kernels() if not places.fastest([copy], place)]
        if missing:
            finding.problem = f"the copy kernel {missing[0]} was not measured"
    return finding


def of_processes(target, findings):
    """The middle of what several processes say; one that does not count spoils all."""
    for finding in findings:
        if finding.problem:
            return finding
    ratios = [finding.ratio for finding in findings]
    middle = median_of(ratios)
    nearest = min(findings, key=lambda finding: abs(finding.ratio - middle))
    nearest.ratio, nearest.passed = middle, middle >= target.threshold
    nearest.is_trusted = all(finding.is_trusted for finding in findings)
    nearest.between = (min(ratios), max(ratios)) if len(ratios) > 1 else None
    return nearest


def switches(element, operator):
    """Both sides of each size at which `auto` takes something else, by the committed table of this architecture."""
    table = (ROOT / "tuning/sm_90.toml").read_text(encoding="utf-8")
    rows = [dict(re.findall(r'^(element|operator|up_to) = "?(\w+)"?$', row, re.M)) for row in table.split("[[row]]")[1:]]
    ends = [int(row["up_to"]) for row in rows if (row["element"], row["operator"]) == (element, operator) and "up_to" in row]
    return [n for end in ends for n in (end, end + 1)]


def copy_kernels():
    """The names of all copy kernels, by the table in src/lab/measure/copies.rs."""
    table = (ROOT / "src/lab/measure/copies.rs").read_text(encoding="utf-8").split("COPY_KERNELS: &[CopyKernel] = &[")[1].split("];")[0]
    names = [f"copy-{words}x{threads}" for threads, words in re.findall(r"threads: (\d+), manner: Manner::Words\((\d+)\)", table)]
    for threads, tile, stages, blocks in re.findall(r"ring\((\d+), (\d+), (\d+), (\d+)\)", table):
        names.append(f"copy-ring-{tile}x{stages}x{blocks}" + ("" if threads == "32" else f"-{threads}"))
    if not names or len(names) != table.count("Manner::Words(") + table.count("::ring("):
        raise Missing("the table of copy kernels in src/lab/measure/copies.rs reads otherwise by now")
    return names


class Promised:
    """What the committed sweep asks of `auto` in a record's process, and the points at which peers stand beside it."""

    def __init__(self, record):
        self.places, self.with_peers = [], set()
        is_first = (record.process() or 1) == 1
        for group in read_toml(ROOT / "sweeps/targets.toml")["measure"]:
            if not is_first and not group.get("every_process"):
                continue
            for element in group.get("types", ["i32"]):
                for operator in group.get("operators", ["sum"]):
                    if operator not in ("and", "or", "xor") or element not in ("f16", "bf16", "f32", "f64"):
                        self.add(group, element, operator)
        self.places = unique(self.places)

    def add(self, group, element, operator):
        for text in group["sizes"]:
            for n in switches(element, operator) if text == "switches" else [parse_size(text, TYPES[element])]:
                for offsets in map(tuple, group.get("offsets", [[0, 0]])):
                    if group.get("peers"):
                        self.with_peers.add((element, operator, n, offsets))
                    if "auto" in group.get("strategies", []):
                        self.places += [(element, operator, n, offsets, mode, figure)
                                        for mode in group.get("modes", ["inclusive"]) for figure in group["figures"]]

    def covers(self, target, row):
        """Whether a row is one of the target's; what is judged beside CUB is so where the sweep has peers."""
        is_by_peers = target.yardstick in ("CUB", "an octave's ends")
        return target.covers(row) and (not is_by_peers or (row.element, row.operator, row.n, row.offsets) in self.with_peers)


class Place:
    """As much of a row as `Target.covers` looks at."""

    def __init__(self, place):
        self.element, self.operator, self.n, self.offsets, self.mode, _ = place


def findings_of(target, processes):
    found = {}
    for record, places, promised in processes:
        here = {}
        for row in record.rows:
            if row.subject == "auto" and row.kind == "strategy" and row.is_flat and promised.covers(target, row):
                for figure in target.figures:
                    if figure in row.figures or row.status != "measured":
                        place = (row.element, row.operator, row.n, row.offsets, row.mode, figure)
                        finding = finding_of(target, row, place, places)
                        if finding:
                            here.setdefault(place, []).append(finding)
        if target.yardstick != "an octave's ends":
            for place in promised.places:
                if place[5] in target.figures and place not in here and promised.covers(target, Place(place)):
                    here[place] = [Finding(place, problem="it was not measured")]
        for place, findings in here.items():
            found.setdefault(place, []).extend(findings)
    return sorted((of_processes(target, of_one) for of_one in found.values()), key=Finding.order)


def gpu_slug(record):
    words = [word for word in re.split(r"[^a-z0-9]+", record.gpu().lower()) if word and word != "nvidia"]
    is_model = words and re.search(r"\d", words[0]) and re.search(r"[a-z]", words[0])
    return words[0] if is_model else "-".join(words)


class Outcomes:
    """Every target on the records of all processes on one GPU."""

    def __init__(self, record, records):
        others = [other for other in records if other.is_of_targets() and (other.process() or 0) > 1
                  and gpu_slug(other) == gpu_slug(record)]
        self.record, self.records = record, [record, *others]
        self.is_ours = gpu_slug(record) == "h200"
        processes = [(one, Places(one), Promised(one)) for one in self.records]
        self.outcomes = [(target, findings_of(target, processes)) for target in TARGETS]
        times = [one.call_times for one in self.records if one.call_times]
        starts = [[[1e3 * (start["scanner_ms"] + start["first_scan_ms"]) for start in one["starts"] if start["has_kernels"] == has]
                   for one in times] for has in (True, False)]
        of_host = [[one["tracked"]["returned_us"] for one in times], *starts]
        self.host = [median_of([median_of(series) for series in of_one if series]) for of_one in of_host]

    def processes(self):
        return "one process" if len(self.records) == 1 else f"{len(self.records)} processes"

    def word(self, passed):
        return ("pass" if passed else "MISS") if self.is_ours else "(h200)"

    def verdicts(self):
        rows = [bool(findings) and all(finding.passed for finding in findings) for _, findings in self.outcomes]
        return rows + [found is not None and found <= most for found, (_, most) in zip(self.host, HOST_TARGETS)]

    def sentinel(self):
        """A sentence on what the same copy took at all points."""
        everything, steps = [], 0
        for record in self.records:
            of_points = [point.get("sentinel") for point in record.points]
            times = [one["median_ns"] / 1e3 for one in of_points if one and one.get("median_ns") is not None]
            steps += sum(abs(time / median_of(times) - 1) > 0.03 for time in times)
            everything += times
        if not everything:
            return None
        return (f"The sentinel, one copy at all of {len(everything)} points, took {median_of(everything):.3f} us, "
                f"{min(everything):.3f} to {max(everything):.3f}; at {steps} it was more than 3 % off its process's median.")


def worst_of(findings):
    return next((finding for finding in findings if finding.ratio is not None), None)


def host_time(time):
    return f"{time:.1f} us" if time < 1e3 else f"{time / 1e3:.1f} ms"


def targets_table(record, records):
    outcomes = Outcomes(record, records)
    verdicts, rows = outcomes.verdicts(), []
    for (target, findings), passed in zip(outcomes.outcomes, verdicts):
        worst, show = worst_of(findings), target.show
        middle = median_of([finding.ratio for finding in findings if finding.ratio is not None])
        bound = worst.bound if worst and not worst.passed else None
        rows.append([
            target.place, outcomes.word(passed), target.demand(),
            (show(worst.ratio) if worst else DASH) + ("?" if worst and not worst.is_trusted else ""),
            " to ".join(map(show, worst.between)) if worst and worst.between else DASH,
            DASH if middle is None else show(middle),
            f"{sum(finding.passed for finding in findings)} of {len(findings)}",
            worst.title() if worst else DASH, or_dash(uncounted(findings)),
            f"{show(bound[0])} ({100 * bound[1]:.0f} % of it)" if bound else DASH])
    for (place, most), found, passed in zip(HOST_TARGETS, outcomes.host, verdicts[len(TARGETS):]):
        cells = [place, outcomes.word(passed), f"at most {host_time(most)}", DASH if found is None else host_time(found)]
        rows.append(cells + [DASH] * 6)
    sentinel = outcomes.sentinel()
    caption = ("Time of what a scan is compared with by its own, in the same rounds, by "
               f"{outcomes.processes()}; \"without waiting\" is what the kernel of the worst miss reaches when it does "
               f"not wait for other tiles, and how much of that the scan does: {record.origin()}." + (f" {sentinel}" if sentinel else ""))
    columns = ["target", "verdict", "at least", "worst", "by process", "median", "reached", "worst at", "not counted",
               "without waiting"]
    return Table(caption, columns, rows).explained()


def uncounted(findings):
    """How many figures do not count, and why the first of them does not."""
    problems = [finding.problem for finding in findings if not finding.passed and finding.problem]
    return f"{len(problems)} do not count: {problems[0]}" if problems else None


def notes_of(target, findings):
    """What stands below a target's line in the text."""
    notes = [] if findings else ["nothing was measured"]
    worst, show = worst_of(findings), target.show
    if worst:
        between = f", {show(worst.between[0])} to {show(worst.between[1])} by process" if worst.between else ""
        notes.append(f"worst: {worst.title()}{between}" + ("" if worst.is_trusted else " (no noise criterion met)"))
        if not worst.passed and worst.bound:
            notes.append(f"without waiting: {show(worst.bound[0])}, we reach {100 * worst.bound[1]:.1f} % of that")
    misses = [finding for finding in findings if not finding.passed]
    notes += [uncounted(findings)] if uncounted(findings) else []
    bounds = [finding.bound[1] for finding in misses if finding.bound]
    if bounds:
        near = sum(share >= 1 / 1.05 for share in bounds)
        notes.append(f"of {len(bounds)} misses with a bound {near} are at most 5 % slower than it")
    return notes


def targets_text(record, records):
    """The lines of targets-GPU.txt, every miss among them."""
    outcomes, misses = Outcomes(record, records), []
    verdicts = outcomes.verdicts()
    lines = [f"{record.gpu()}, driver {record.header['machine']['driver']}, {record.header['date']}", "",
             f"{'target':<20} {'at least':<24} {'worst':>7} {'median':>7} {'reached':>9}  verdict"]
    for (target, findings), passed in zip(outcomes.outcomes, verdicts):
        worst, middle = worst_of(findings), median_of([finding.ratio for finding in findings if finding.ratio is not None])
        at_worst, in_the_middle = (target.show(ratio) if worst else "-" for ratio in (worst and worst.ratio, middle))
        reached = f"{sum(finding.passed for finding in findings)}/{len(findings)}"
        lines.append(f"{target.place:<20} {target.demand():<24} {at_worst:>7} {in_the_middle:>7} {reached:>9}  {outcomes.word(passed)}")
        lines += [f"    {line}" for note in notes_of(target, findings) for line in wrapped(note, 76)]
        misses += [(target, finding) for finding in findings if not finding.passed and worst and outcomes.is_ours]
    for (place, most), found, passed in zip(HOST_TARGETS, outcomes.host, verdicts[len(TARGETS):]):
        shown = "-" if found is None else host_time(found)
        lines.append(f"{place:<20} {'at most ' + host_time(most):<24} {shown:>25}  {outcomes.word(passed)}")
    sentinel = outcomes.sentinel()
    lines += ["", *wrapped(sentinel, 80)] if sentinel else []
    if outcomes.is_ours:
        lines += ["", f"{sum(verdicts)} of {len(verdicts)} targets reached on the {record.gpu()}, by {outcomes.processes()}."]
    else:
        lines += ["", f"No target is for the {record.gpu()}: the figures are for information."]
    lines += ["", "Misses, of each target the worst first:"] if misses else []
    for target, finding in misses:
        found = finding.problem or f"{target.show(finding.ratio)} of {target.show(target.threshold)}"
        bound = finding.bound
        bound = f", without waiting {target.show(bound[0])} ({100 * bound[1]:.0f} %)" if bound else ""
        lines += [f"  {line}" for line in wrapped(finding.title(), 78)]
        lines += [f"      {line}" for line in wrapped(f"{target.place}: {found}{bound}", 74)]
    return lines


# ---------------------------------------------------------------------------------------------------------------
# Titles of pictures: what came out, as the table `figures` says it.

BESIDE = {"cold": "cold L2", "stream": "on a stream", "graph": "in a graph", "latency": "from call to result"}
SMALL = 1 << 20


def main_figure(n, rows):
    order = ("cold", "graph", "stream", "latency") if n > SMALL else ("graph", "cold", "stream", "latency")
    return next((figure for figure in order if any(row.time(figure) for row in rows)), order[0])


def titles(record):
    """Names and titles of a record's pictures, in order."""
    gpu, families = record.gpu().replace("NVIDIA ", ""), Family.all(record)
    is_of_targets, found = record.is_of_targets(), []
    for family in families:
        # Of scans at few sizes, and of further processes, the table of targets says more than pictures would.
        if is_of_targets and not (record.is_judged() and family.mode == "inclusive" and len(family.sizes()) >= 48):
            continue
        of_vts = titles_by_vt(family, gpu)
        found += of_vts
        if not of_vts and len(family.sizes()) >= 5:
            found += [(f"{kind}-{family.slug()}", title) for kind, title in contests(record, family, gpu)]
            if not is_of_targets:
                found += [(f"{kind}-{family.slug()}", title) for kind, title in titles_by_size(family, gpu)]
    if not is_of_targets:
        found += titles_by_type(families, gpu)
    by_length = title_by_length(record, gpu)
    found += [("segments-rows-and-columns", by_length)] if by_length else []
    return [(f"{record.stem}-{name.replace(' ', '-')}.svg", title) for name, title in found]


def titles_by_vt(family, gpu):
    groups = {}
    for row in family.rows:
        if row.vt is not None and not row.chosen and row.status != "wrong":
            groups.setdefault((row.subject, row.n), []).append(row)
    found = []
    for (subject, n), rows in sorted(groups.items()):
        if len({row.vt for row in rows}) < 2:
            continue
        figure = main_figure(n, rows)
        place = f"{subject}, n = {format_power(n)}, {BESIDE[figure]}: {family.title()}, {gpu}"
        slug = f"{subject}-{format_size(n).replace('^', '-')}-{family.slug()}"
        if len({row.vt for row in rows if row.status == "measured" and row.time(figure)}) >= 2:
            found.append((f"vt-lines-{slug}", f"Throughput by VT: {place}"))
        found.append((f"vt-map-{slug}", f"VT × block: {place}"))
    return found


def ratio_answer(label, points, element, words, is_worse):
    """Points are (elements, ratio): between which ratios a line lies, and where."""
    verb, as_what, worse = words
    low = min(points, key=lambda point: point[1])
    high = max(reversed(points), key=lambda point: point[1])
    count = sum(is_worse(ratio) for _, ratio in points) or "none"
    return (f"{label} {verb} {low[1]:.2f} ({format_array(low[0], element)}) to {high[1]:.2f} times "
            f"({format_array(high[0], element)}) {as_what} the best CUB, {worse} at {count} of {len(points)} sizes")


def copies_of(record):
    """(bytes, nanoseconds) of cudaMemcpy: cold, and of arrays beyond four times the L2 on a stream and in a graph too."""
    found = []
    for row in record.rows:
        if row.subject == "memcpy" and row.offsets == (0, 0) and row.status == "measured" and row.is_plain:
            is_uncached = row.bytes >= 4 * record.header["machine"]["l2_bytes"]
            found += [(row.bytes // 2, row.framed(figure)) for figure in ("cold", "stream", "graph")
                      if row.time(figure) and (figure == "cold" or is_uncached)]
    return found


def sizes_on_line(sizes):
    """Sizes that all but coincide with another one are beside the line: powers of two come first, then the smaller."""
    kept = [size for size in sizes if is_power(size)]
    for size in sizes:
        if all(max(size, other) > 1.09 * min(size, other) for other in kept):
            kept.append(size)
    return kept


def contests(record, family, gpu):
    """The two pictures that answer: percent of cudaMemcpy's rate, and time by the best CUB's."""
    copies, best, width = copies_of(record), family.best_peers("cold"), TYPES[family.element]

    def percent(row):
        size = -(-(row.bytes // 2) // 16) * 16
        times = [time for of, time in copies if of >= size] if any(of == size for of, _ in copies) else []
        return 100 * min(times) / row.framed("cold") if times else None

    def by_cub(row):
        return row.framed("cold") / best[row.n].framed("cold") if row.n in best else None

    def lines(value):
        series = {}
        for subject in ("auto", "lookback", "reduce-then-scan"):
            rows = [family.row(subject, n, "cold") for n in family.sizes()]
            points = [(row.n, value(row)) for row in rows if row and value(row) is not None]
            if points:
                series[subject] = points
        return series

    whose = f"{family.element} {family.operator} scans, {family.rest()}, cold L2, {gpu}"
    series = lines(percent)
    cub = [(n, percent(row)) for n, row in sorted(best.items()) if percent(row) is not None]
    places = sorted({n for points in [*series.values(), cub] for n, _ in points})
    found = []
    if series and len(places) >= 2:
        label, points = next(iter(series.items()))
        reached = math.floor(min(y for n, y in points if n >= points[-1][0] / 2))
        on_line = sizes_on_line([n * width for n in places])
        first = None
        for n, y in reversed(points):
            if y < reached:
                break
            first = n if n * width in on_line else first
        if first is not None:
            start = f"from {format_array(first, family.element)} on" if first > points[0][0] else "at every size"
            of_cub = [y for n, y in cub if n >= first]
            beside = f", the best CUB {math.floor(min(of_cub))} %" if of_cub else ""
            found.append(("copy", f"{whose}: {label} reaches at least {reached} % of cudaMemcpy's rate {start}{beside}"))
    series = lines(by_cub)
    if len({n for points in series.values() for n, _ in points}) >= 2:
        label, points = next(iter(series.items()))
        answer = ratio_answer(label, points, family.element, ("takes", "as long as", "longer"), lambda ratio: ratio > 1)
        found.append(("relative", f"{whose}: {answer}"))
    return found


def titles_by_size(family, gpu):
    scan, found = f"{family.title()}, {gpu}", []

    def lines(figure, is_shown):
        series = {}
        for subject in family.subjects():
            rows = [family.row(subject, n, figure) for n in family.sizes()]
            rows = [row for row in rows if row and not is_variant(subject) and is_shown(row)]
            if rows:
                series[subject] = rows
        return series

    def places(series):
        return len({row.n for rows in series.values() for row in rows})

    if places(lines("cold", lambda row: True)) >= 2:
        found.append(("throughput", f"Throughput by size, cold L2: {scan}"))
    for figure in ("graph", "stream", "latency"):
        if places(lines(figure, lambda row: row.n <= SMALL)) >= 2:
            found.append((f"time-{figure}", f"Time at small n, {BESIDE[figure]}: {scan}"))
    best = family.best_peers("graph")
    series = lines("graph", lambda row: row.kind not in FLOORS and not row.subject.startswith("cub-") and row.n in best)
    if places(series) >= 2:
        label, rows = next(iter(series.items()))
        points = [(row.n, best[row.n].time("graph") / row.time("graph")) for row in rows]
        answer = ratio_answer(label, points, family.element, ("is", "as fast as", "slower"), lambda ratio: ratio < 1)
        found.append(("speed-up-graph", f"{family.title()}, in a graph, {gpu}: {answer}"))
    return found


def titles_by_type(families, gpu):
    groups, found = {}, []
    for family in families:
        if len(family.sizes()) < 5:
            for n in family.sizes():
                key = (OPERATORS.index(family.operator), MODES.index(family.mode), n, family.offsets)
                groups.setdefault(key, []).append(family)
    for (_, _, n, offsets), of_types in sorted(groups.items(), key=lambda group: group[0]):
        rows = [row for family in of_types for row in family.measured() if row.n == n]
        figure = main_figure(n, rows)
        subjects = unique(row.subject for row in rows if row.kind not in FLOORS and not is_variant(row.subject))
        has_points = any(family.row("memcpy", n, figure) and family.row(subject, n, figure)
                         for family in of_types for subject in subjects)
        if len(of_types) >= 3 and len(subjects) >= 2 and has_points:
            operator, mode = of_types[0].operator, of_types[0].mode
            place = joined(f"n = {format_power(n)}", offsets_text(offsets), gpu)
            slug = "" if offsets == (0, 0) else f"-offsets-{offsets[0]}-{offsets[1]}"
            found.append((f"types-{operator}-{mode}-{format_size(n).replace('^', '-')}{slug}",
                          f"Percent of copy by type, {BESIDE[figure]}: {operator}, {mode}, {place}"))
    return found


def title_by_length(record, gpu):
    points = Points(record)
    rows = [row for row in points.scans() if row.problem in LINES]
    figure = next((name for name in ("graph", "cold") if any(points.times_copy(row, name) for row in rows)), None)
    if figure is None:
        return None
    several, lines = len({row.subject for row in rows}) > 1, {}
    for row in rows:
        ratio = points.times_copy(row, figure)
        if row.segment is not None and ratio is not None:
            label = joined(problem_text(row), types_text(row), row.subject if several else "")
            lines.setdefault(label, []).append((row.segment, row.n, ratio))
    series = []
    for of_label in lines.values():
        # One line of all lengths, or one of each n where a length was measured at several.
        is_one = len({segment for segment, _, _ in of_label}) == len(of_label)
        for n in [None] if is_one else unique(n for _, n, _ in of_label):
            series.append([(segment, ratio) for segment, of, ratio in of_label if n in (None, of)])
    shown = [point for points_of_line in series if len(points_of_line) >= 2 for point in points_of_line]
    if len({segment for segment, _ in shown}) < 2:
        return None
    ratios = [ratio for _, ratio in shown]
    return (f"Scans by the length of rows and columns, {BESIDE[figure]}, {gpu}: {min(ratios):.2f} to {max(ratios):.2f} times as "
            "long as the copy")


def figures_table(records):
    rows = [[f"[{title}]({name})", f"[{record.file}]({record.file})", f"`{record.command}`"]
            for record in records for name, title in titles(record)]
    return Table("Every picture, the data it is drawn from, and the command that measured it.", ["figure", "data", "command"], rows)


# ---------------------------------------------------------------------------------------------------------------
# Tables of what is no record of a sweep: mutants, costs, and the one in reports/README.md that is written by hand.

DETECTORS = {"cpu-schedules": "schedules", "weak-memory": "weak", "thread-sanitizer": "TSan", "loom": "loom",
             "ptx-enumerator": "PTX", "gpu-stress": "GPU", "compute-sanitizer": "sanitizer"}
FAULTS = {"ordering": "order, scope and width of the protocol's accesses", "barrier": "barriers in a block or a warp",
          "protocol": "tickets, epochs, workspaces", "algorithm": "what is computed",
          "harmless": "harmless variants: they must survive"}


def short_seconds(seconds):
    if seconds < 0.0995:
        return f"{max(seconds * 1e3, 1.0):.0f} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


def mutants_tables(path):
    """Kills by kind of fault and detector, and a row a fault with the time to its kill."""
    kills = json.loads(path.read_text(encoding="utf-8"))
    detectors, machine = kills["detectors"], kills["machine"]
    words = {"survived": "survived", "not-modelled": "·", "not-run": DASH}

    def killed(rows):
        return [str(sum(row["detectors"].get(name, {}).get("verdict") == "killed" for row in rows)) for name in detectors]

    def cell(found):
        return DASH if found is None else short_seconds(found["seconds"]) if found["verdict"] == "killed" else words[found["verdict"]]

    def unmutated(found):
        verdict = (found or {}).get("verdict")
        return f"{found['runs']:,}" if verdict == "survived" else "**reported**" if verdict == "killed" else DASH

    of_kinds = []
    for kind, heading in FAULTS.items():
        rows = [row for row in kills["mutants"] if row["kind"] == kind]
        of_kinds.append([heading, str(len(rows)), *killed(rows)])
    for rule in sorted({row["rule"].replace("_", " ") for row in kills["mutants"] if row.get("rule")}):
        rows = [row for row in kills["mutants"] if (row.get("rule") or "").replace("_", " ") == rule]
        of_kinds.append([f"of these by rule: {rule}", str(len(rows)), *killed(rows)])
    of_kinds.append(["the kernels as they are: runs without a failure", "",
                     *(unmutated(kills["unmutated"].get(name)) for name in detectors)])
    each = [["`" + row["name"] + "`" + (" (harmless)" if row["kind"] == "harmless" else ""), row["text"],
             *(cell(row["detectors"].get(name)) for name in detectors)] for row in kills["mutants"]]
    facts = joined(kills["date"][:10], machine.get("processor", ""), machine.get("GPU", ""))
    names = [DETECTORS[name] for name in detectors]
    return [Table(f"Faults that each detector found: {facts}, `{kills['command']}`.", ["faults", "how many", *names], of_kinds),
            Table("<details><summary>Each fault, and the time to its kill</summary>", ["mutant", "what it is", *names], each)]


def costs_cells(path, check, element_moves):
    """Each row of an account with its cells by their columns; `element_moves` is what the strategies' own table says of each."""
    account = json.loads(path.read_text(encoding="utf-8"))
    rows, of_copy = [], {}
    for fields in account["rows"]:
        row = Row(fields["measured"])
        cold = fields["measured"]["cold"]
        if cold:
            row.figures["cold"] = cold
            row.times["cold"], row.rates["cold"] = check.figure(f"{path.stem}, {row.subject} cold", cold, row.bytes)
        if row.subject == "memcpy":
            of_copy[row.point] = row.time("cold")
        rows.append((row, fields))
    cells = []
    for row, fields in rows:
        counts, n = fields.get("counts"), row.n
        time, copy = row.time("cold"), of_copy.get(row.point)
        percent = rounded(100 * copy / time, 2) if time and copy else None
        if percent is not None:
            check.same(f"{path.stem}, {row.subject}", "percent_of_copy", row.figures["cold"]["percent_of_copy"], percent)
        sectors = counts and counts["l2_sectors_read"] + counts["l2_sectors_written"]
        cells.append((row, {
            "VT": row.vt, "block": row.block, "launches": row.fields["launches"],
            "element-moves": element_moves.get(row.chosen or row.subject),
            "moves an element, counted": None if fields["moves_per_element"] is None else f"{fields['moves_per_element']:.3f}",
            "cold, µs": time and significant(time / 1e3) + ("" if row.is_trusted("cold") else "?"),
            "% of copy": None if percent is None else f"{percent:.1f}",
            "DRAM, B read": counts and f"{counts['dram_bytes_read'] / n:.3f}",
            "DRAM, B written": counts and f"{counts['dram_bytes_written'] / n:.3f}",
            "L2, B": counts and f"{sectors * 32 / n:.3f}",
            "instructions": counts and f"{counts['warp_instructions'] / n * 32:.1f}"}))
    return account["header"], cells


def costs_tables(path, check, element_moves):
    """An account of one scan and size."""
    header, rows = costs_cells(path, check, element_moves)
    scans = unique((row.point, row.mode) for row, _ in rows if row.kind == "strategy")
    if len(scans) != 1:
        return f"it has {len(scans)} scans, and one is what is known here"
    cells = [{"strategy": f"{row.subject}: {row.chosen}" if row.chosen else row.subject, **of_row} for row, of_row in rows]
    columns = [name for name in cells[0] if any(row[name] is not None for row in cells)]
    scan = next(row for row, _ in rows if row.kind == "strategy")
    commit = f"commit {header['git_commit'][:7]}, " if header.get("git_commit") else ""
    caption = (f"What a scan costs, {joined(scan_text(scan), scan.mode, 'n = ' + format_size(scan.n))}: {header['device']['name']}, "
               f"{header['date'].split('T')[0]}, {commit}`{header['command']}`.")
    return [Table(caption, columns, [[or_dash(row[name]) for name in columns] for row in cells])]


def strategies_table():
    """From the rows of src/strategy/table.rs: what none of them says is that of UNTILED."""
    source = (ROOT / "src/strategy/table.rs").read_text(encoding="utf-8")
    source = re.sub(r"\\\n\s*", "", source)
    defaults, table = re.split(r"^strategies! \{$", source, flags=re.M)

    def text(field, row):
        return re.search(rf'\b{field}: "([^"]*)"', row + defaults).group(1)

    rows = [[f"`{name}`", text("launches", row), text("element_moves", row), text("summary", row)]
            for name, row in re.findall(r'^    \w+ = "([a-z-]+)" \{\n(.*?)^    \}$', table, re.M | re.S)]
    return Table("Each strategy, its launches for one scan, and the elements that it reads and writes.",
                 ["strategy", "launches", "element-moves", ""], rows)


def records_table(records):
    """Where each record is from, and how many of its figures met no criterion."""
    rows = []
    for record in records:
        program = record.header["program"]
        figures = [(name, figure) for row in record.rows for name, figure in row.figures.items() if not figure.get("unavailable")]
        marked = {name: sum(of == name and not figure["is_trusted"] for of, figure in figures) for name in FIGURES}
        rows.append([f"[{record.stem}]({record.file})", record.header["date"].split("T")[0], or_dash((program["git_commit"] or "")[:7] or None),
                     program["kernels_sha256"], record.header["machine"]["gpu_digest"],
                     ", ".join(f"{name} {count}" for name, count in marked.items() if count) or DASH,
                     str(sum(marked.values())), str(len(figures))])
    caption = ("Each record: the day; the commit that its header names, if the program knew it; the hash of the kernels' sources; "
               "a digest of the card's identity; how many of its figures are marked, because they met no noise criterion; and how "
               "many it has.")
    return Table(caption, ["record", "measured", "commit", "kernels", "card", "marked are", "marked", "figures"], rows)


# ---------------------------------------------------------------------------------------------------------------
# What stands in documents and on the page.


def cells_of_line(line):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def markdown_tables(text):
    """Every table with the paragraph before it."""
    tables, caption, lines = [], "", text.splitlines()
    for index, line in enumerate(lines):
        if line.startswith("|") and (index == 0 or not lines[index - 1].startswith("|")):
            rows = []
            for row in lines[index + 2:]:
                if not row.startswith("|"):
                    break
                rows.append(cells_of_line(row))
            tables.append(Table(caption, cells_of_line(line), rows))
        elif line.strip() and not line.startswith("|"):
            caption = line.strip()
    return tables


def blocks_of(document):
    """The tables between markers by name."""
    text = document.read_text(encoding="utf-8")
    names = re.findall(r"^<!-- lookback:begin (\S+) -->$", text, re.M)
    found = re.findall(r"^<!-- lookback:begin (\S+) -->\n(.*?)^<!-- lookback:end \1 -->$", text, re.M | re.S)
    if [name for name, _ in found] != names:
        raise Missing(f"{document}: a marker has no end")
    return [(name, markdown_tables(block)) for name, block in found]


def page_tables(page):
    """The tables of each record's section, by its name: those with heads, each with the paragraph right before it."""
    sections = re.split(r'^<h2 id="([^"]+)">', page.read_text(encoding="utf-8"), flags=re.M)
    pattern = re.compile(r'(?:<p[^>]*>([^\n]*)</p>\n)?<div class="scroll">\n<table class="words-\d">\n'
                         r"<thead><tr>(.*?)</tr></thead>\n<tbody>\n(.*?)</tbody>", re.S)

    def cells(line):
        return [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.S)]

    return {stem: [Table(html.unescape(caption or ""), cells(head), [cells(row) for row in body.split("</tr>\n")[:-1]])
                   for caption, head, body in pattern.findall(text)]
            for stem, text in zip(sections[1::2], sections[2::2])}


# ---------------------------------------------------------------------------------------------------------------
# Claims.


CLAIM_KEYS = {"record", "subject", "against", "figure", "net-of-frame", "quantity", "statistic", "limit", "value", "tolerance",
              "types", "inputs", "modes", "problems", "segments", "from", "up-to"}
READING_KEYS = {"record", "of", "after", "less", "by", "times", "value", "tolerance"}


def claim_time(row, claim):
    """A cold time with the empty frame, if that is not taken off. A copy in a graph is the faster of that and the one on a stream."""
    figure = claim["figure"]
    figures = ("graph", "stream") if row.kind == "copy" and figure == "graph" else (figure,)
    if row.time(figure) is None:
        return None
    has_frame = figure == "cold" and not claim.get("net-of-frame")
    return min(row.framed(of) if has_frame else row.time(of) for of in figures if row.time(of))


def claim_values(claim, record):
    """What is computed at each point that a claim is about."""
    if (claim["quantity"] == "microseconds") != ("against" not in claim):
        raise Missing(f"a time in microseconds stands alone, and all else against something: {claim}")

    def is_among(name, value):
        return not claim.get(name) or value in claim[name]

    def is_asked(row):
        width = TYPES[row.element]
        # A bound's result is wrong by design, and its time is what is asked for.
        return ((row.status == "measured" or row.kind == "bound") and is_among("types", row.element)
                and is_among("inputs", row.input or row.element) and is_among("problems", row.problem)
                and is_among("segments", row.segment or 0)
                and ("from" not in claim or row.n >= parse_size(claim["from"], width))
                and ("up-to" not in claim or row.n <= parse_size(claim["up-to"], width)))

    asked = [row for row in record.rows if is_asked(row)]

    def times_of(subject):
        """(point and mode, time) of each row of a subject."""
        is_of = {"peers": lambda row: row.kind == "peer", "copies": lambda row: row.kind == "copy" and row.subject != "memcpy"}
        rows = filter(is_of.get(subject, lambda row: row.subject == subject), asked)
        timed = [((row.point, row.mode), claim_time(row, claim)) for row in rows]
        return [(place, time) for place, time in timed if time is not None]

    def fastest_of(subject):
        fastest = {}
        for place, time in times_of(subject):
            fastest[place] = min(time, fastest.get(place, math.inf))
        return fastest

    subject, values = claim.get("subject", "auto"), []
    others = fastest_of(claim["against"]) if "against" in claim else {}
    for (point, mode), time in fastest_of(subject).items() if subject in ("peers", "copies") else times_of(subject):
        # Copies have no mode and stand beside each.
        other = others.get((point, mode), others.get((point, None)))
        if not is_among("modes", mode):
            continue
        if claim["quantity"] == "microseconds":
            values.append(time / 1e3)
        elif other is not None:
            values.append({"times-as-long": time / other, "times-as-fast": other / time, "percent": 100 * other / time}[claim["quantity"]])
    return values


def claim_found(claim, values):
    """What is said of all values; nothing of none."""
    limit = claim.get("limit", 1.0)
    return {"least": min, "most": max, "median": median_of, "points": len,
            "below": lambda all_of_them: sum(value < limit for value in all_of_them),
            "above": lambda all_of_them: sum(value > limit for value in all_of_them)}[claim["statistic"]](values) if values else None


def words(text):
    return " ".join(text.split())


def entries_of(path, element_moves):
    """What a record other than a sweep's says, as lines of words with a number behind each."""
    if path.name == "ranks.json":
        return [ranks_entry(row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]
    if path.name == "traces.json.gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [words(scan["summary"]) for scan in json.load(file)["scans"]]
    if path.suffix == ".json":
        _, rows = costs_cells(path, Check(), element_moves)
        return [row.subject + "".join(f"; {name} {cell}" for name, cell in cells.items() if cell is not None) for row, cells in rows]
    if path.suffix == ".txt":
        return [words(line) for line in path.read_text(encoding="utf-8").splitlines()]
    raise Missing(f"{path} is no record of a kind that is known")


def ranks_entry(row):
    """Who shares what in which manner, microseconds of all and of one alone, and how many times the rate of one that is."""
    time, alone = (median_of(row[name]) or 0.0 for name in ("samples_ns", "alone_ns"))
    # All have n elements in their time, and one alone a rank's share of them in its own.
    times_one = alone * row["ranks"] / time if time else math.nan
    chunk = f" by {row['chunk']}" if row.get("chunk") is not None else ""
    types = row["output"] if row["input"] == row["output"] else f"{row['input']} -> {row['output']}"
    return (f"{row['manner']}{chunk}: {types} {row['operator']} {row['mode']}, n {row['n']} of {row['ranks']}; µs {time / 1e3} "
            f"alone {alone / 1e3} added {(time - alone) / 1e3} times-one {times_one} by-bytes {row['by_bytes']}")


def number_at(entries, of, after):
    """The number behind some words of the one entry that has all pieces of text."""
    meant = [entry for entry in entries if all(part in entry for part in of)]
    if len(meant) != 1:
        raise ValueError(f"{len(meant)} entries of the record have {of}")
    _, found, behind = meant[0].partition(after) if after else ("", True, meant[0])
    if not found:
        raise ValueError(f"'{after}' does not stand in '{meant[0]}'")
    number = re.match(r"[\s:(+=]*([0-9.,-]*)", behind).group(1).rstrip(".,").replace(",", "")
    try:
        return float(number)
    except ValueError:
        raise ValueError(f"no number stands behind '{after}' in '{meant[0]}'") from None


def reading_found(reading, entries):
    places = {name: reading.get(name) for name in ("less", "by")}
    other = {name: place and number_at(entries, place["of"], place["after"]) for name, place in places.items()}
    found = (number_at(entries, reading["of"], reading["after"]) - (other["less"] or 0.0)) * reading.get("times", 1.0)
    return found if other["by"] is None else found / other["by"]


def told_lacks(told):
    """What an entry on figures without a record does not say of what it must."""
    days = told["date"].split(" to ")
    lacks = [("command", bool(told["command"].strip())), ("device", bool(told["device"].strip())),
             ("date", all(re.fullmatch(r"\d{4}-\d\d-\d\d", day) for day in days)),
             ("commit", re.fullmatch(r"[0-9a-fA-F]{7,}", told.get("commit", "0000000")) is not None)]
    return [name for name, is_said in lacks if not is_said]


def read_toml(path):
    try:
        import tomllib
    except ImportError as error:
        raise Missing(f"{path} was not checked: tomllib is not there, which Python has from 3.11 on") from error
    return tomllib.loads(path.read_text(encoding="utf-8"))


def check_sweep(records, report):
    """That what the targets' records measure is in the committed sweep, by which they are judged; it may ask for more by now."""
    groups = read_toml(ROOT / "sweeps/targets.toml")["measure"]

    # A header has the names alone that the file had, or what stands for those that it had not.
    usual = {"operators": ["sum"], "modes": ["inclusive"], "problems": ["flat"], "offsets": [[0, 0]], "every_process": False,
             "bounds": False, "copies": False, "peers": [], "strategies": [], "inputs": [], "segments": []}

    def asks_for(group, measured):
        names = (set(group) | set(usual)) - {"figures"}
        same = all(group.get(name, usual.get(name)) == measured.get(name, usual.get(name)) for name in names)
        return same and set(measured["figures"]) <= set(group["figures"])

    for record in records:
        if record.is_of_targets() and record.process():
            measured = record.header["sweep"]["measure"]
            differences = [f"group {number} in the header of {record.file} is not there"
                           for number, one in enumerate(measured, 1) if not any(asks_for(group, one) for group in groups)]
            report.line("sweeps/targets.toml", f"{len(groups)} groups, of which {record.file} knew {len(measured)}", differences)


def check_claims(path, records, report):
    table, by_file = read_toml(path), {str((record.folder / record.file).relative_to(REPORTS)): record for record in records}
    differences, texts, others, counts = [], {}, {}, {"claims": 0, "readings": 0}
    element_moves = {row[0].strip("`"): row[2] for row in strategies_table().rows}

    def is_written(file, text):
        if file not in texts:
            texts[file] = words((ROOT / file).read_text(encoding="utf-8"))
        if not words(text) or words(text) not in texts[file]:
            differences.append(f"{file} does not say: {text}")

    def compare(sentence, claim, keys, found_in):
        unknown = set(claim) - keys
        if unknown:
            raise Missing(f"what {', '.join(sorted(unknown))} means in a claim on {sentence['file']} is not known here")
        try:
            found = found_in(claim)
        except (ValueError, ZeroDivisionError, FileNotFoundError) as error:
            differences.append(f"{sentence['file']}: {sentence['text']}: {error}")
            return
        if found is None or not abs(found - claim["value"]) <= claim.get("tolerance", 0.0) + 1e-9:
            differences.append(f"{sentence['file']}: {sentence['text']}: the record says {found}, the claim {claim}")

    def of_sweep(claim):
        if claim["record"] not in by_file:
            raise FileNotFoundError(f"reports/{claim['record']} is not there")
        return claim_found(claim, claim_values(claim, by_file[claim["record"]]))

    def of_other(reading):
        name = reading["record"]
        if name not in others:
            if not (REPORTS / name).exists():
                raise FileNotFoundError(f"reports/{name} is not there")
            others[name] = entries_of(REPORTS / name, element_moves)
        return reading_found(reading, others[name])

    for sentence in table["sentence"]:
        is_written(sentence["file"], sentence["text"])
        if not sentence.get("claims") and not sentence.get("readings"):
            differences.append(f"{sentence['file']}: {sentence['text']}: nothing is computed for it")
        for kind, keys, found_in in (("claims", CLAIM_KEYS, of_sweep), ("readings", READING_KEYS, of_other)):
            for claim in sentence.get(kind, []):
                counts[kind] += 1
                compare(sentence, claim, keys, found_in)
    quoted = 0
    for entry in [*table.get("told", []), *table.get("no-figure", [])]:
        for text in [*entry.get("texts", []), *entry.get("blocks", [])]:
            quoted += 1
            is_written(entry["file"], text)
    differences += [f"{told['file']}: what is told of {(told.get('texts') or told.get('blocks'))[0]} lacks {', '.join(told_lacks(told))}"
                    for told in table.get("told", []) if told_lacks(told)]
    differences += [f"{entry['file']}: an entry of no figure does not say why" for entry in table.get("no-figure", [])
                    if not entry["why"].strip()]
    report.line("reports/claims.toml", f"{len(table['sentence'])} sentences, {counts['claims']} claims, {counts['readings']} readings, "
                f"{quoted} texts of which nothing is computed", differences)


# ---------------------------------------------------------------------------------------------------------------
# What is compared, and what came out.


class Report:
    def __init__(self):
        self.differences, self.tables, self.cells, self.rows, self.not_recomputed = 0, 0, 0, 0, []

    def line(self, name, what, differences):
        self.differences += len(differences)
        print(f"{name}: {what}, {len(differences)} differences")
        for difference in differences[:SHOWN]:
            print(f"    {difference}")
        if len(differences) > SHOWN:
            print(f"    and {len(differences) - SHOWN} more")

    def skip(self, name, why):
        self.not_recomputed.append(name)
        print(f"{name}: not recomputed: {why}")

    def tables_of(self, name, ours, standing):
        """Ours are tables, or why there are none."""
        if isinstance(ours, str):
            return self.skip(name, ours)
        differences, cells = [], 0
        if len(ours) != len(standing):
            differences.append(f"{len(standing)} tables stand there, and there are {len(ours)}")
        for mine, theirs in zip(ours, standing):
            cells += sum(map(len, mine.rows))
            if mine.caption != theirs.caption:
                differences.append(f"it says '{theirs.caption}', and is '{mine.caption}'")
            if mine.columns != theirs.columns:
                differences.append(f"its columns are {theirs.columns}, and should be {mine.columns}")
            if len(mine.rows) != len(theirs.rows):
                differences.append(f"{len(theirs.rows)} rows stand there, and there are {len(mine.rows)}")
            for number, (row, other) in enumerate(zip(mine.rows, theirs.rows), 1):
                if len(row) != len(other):
                    differences.append(f"row {number}: {len(other)} cells stand there, and there are {len(row)}")
                differences += [f"row {number} ({', '.join(row[:3])}), {column}: '{there}' stands there, the record says '{here}'"
                                for column, here, there in zip(mine.columns, row, other) if here != there]
        rows = sum(len(table.rows) for table in ours)
        self.tables, self.rows, self.cells = self.tables + len(ours), self.rows + rows, self.cells + cells
        self.line(name, f"{rows} rows, {cells} cells", differences)

    def lines_of(self, name, ours, standing):
        differences = [f"line {number}: '{there}' stands there, and it is '{here}'"
                       for number, (here, there) in enumerate(zip(ours, standing), 1) if here != there]
        if len(ours) != len(standing):
            differences.append(f"{len(standing)} lines stand there, and there are {len(ours)}")
        self.line(name, f"{len(ours)} lines", differences)


def as_list(table):
    return [] if table is None else [table]


def check_documents(folder, documents, records, check, report):
    """Every table between markers, of the records of a folder."""
    by_stem = {record.stem: record for record in records}
    strategies = strategies_table()
    element_moves = {row[0].strip("`"): row[2] for row in strategies.rows}
    for document in documents:
        for name, standing in blocks_of(document):
            place = f"{document.relative_to(ROOT)}, {name}"
            account = folder / f"{name}.json"
            if name in by_stem:
                report.tables_of(place, as_list(main_table(by_stem[name], records)), standing)
            elif name.removesuffix("-by-size") in by_stem:
                report.tables_of(place, [auto_by_size(by_stem[name.removesuffix("-by-size")])], standing)
            elif name == "records":
                report.tables_of(place, [records_table(records)], standing)
            elif name == "figures":
                report.tables_of(place, [figures_table(records)], standing)
            elif name.startswith("mutants-") and account.exists():
                report.tables_of(place, mutants_tables(account), standing)
            elif name.startswith("costs-") and account.exists():
                report.tables_of(place, costs_tables(account, check, element_moves), standing)
            elif name == "strategies":
                report.tables_of(place, [strategies], standing)
            elif name.startswith("lesson-"):
                report.skip(place, "it is counted by runs on the CPU device and has no record")
            else:
                raise Missing(f"{place}: nothing of that name is in {folder.relative_to(ROOT)}")


def check_page(page, records, report):
    sections, place = page_tables(page), page.relative_to(ROOT)
    for record in records:
        if record.stem not in sections:
            report.line(f"{place}, {record.stem}", "no section", ["it is not on the page"])
            continue
        ours = [table for table in as_list(main_table(record, records)) if table.rows]
        for table in ours:
            table.caption = table.caption.replace("`", "")
        untrusted = not_trusted(record)
        # It stands below a line that tells how many there are, and has no caption.
        untrusted.caption = ""
        report.tables_of(f"{place}, {record.stem}", ours + ([untrusted] if untrusted.rows else []) + [all_rows(record)],
                         sections[record.stem])


def main():
    check, report, records = Check(), Report(), []
    for folder in FOLDERS:
        of_folder = [Record(path, check) for path in sorted(folder.glob("*.jsonl.gz"))]
        if not of_folder:
            raise Missing(f"{folder} has no record")
        # Tables of the documents are of the first folder's records.
        documents = sorted((ROOT / "docs").glob("*.md")) if folder == REPORTS else []
        check_documents(folder, [folder / "README.md", *documents], of_folder, check, report)
        check_page(folder / "index.html", of_folder, report)
        for record in of_folder:
            if record.is_judged():
                path = folder / f"{record.stem}.txt"
                lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
                report.lines_of(str(path.relative_to(ROOT)), targets_text(record, of_folder), lines)
        records += of_folder
    report.line(f"the figures of {len(records)} records", f"{check.figures} figures, {check.numbers} numbers", check.differences)
    check_sweep(records, report)
    check_claims(REPORTS / "claims.toml", records, report)
    if report.cells == 0 or check.figures == 0:
        raise Missing("no table and no figure was checked")
    print(f"all: {report.tables} tables, {report.rows} rows, {report.cells} cells, {len(report.not_recomputed)} tables not "
          f"recomputed, {report.differences} differences")
    return 1 if report.differences else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Missing, FileNotFoundError) as missing:
        print(f"recompute.py: {missing}")
        sys.exit(2)
