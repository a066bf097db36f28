#!/usr/bin/env python3
"""What PyTorch, Triton and accelerated-scan take for the scans of docs/problems.md, beside cudaMemcpy of as many bytes.

    python3 scripts/compare-with-pytorch.py [--output FILE] [--only WORD]

Needs a GPU and PyTorch with CUDA; Triton and accelerated-scan are measured where they are installed, and a line says so where
they are not. Nothing of this crate runs here: `lookback sweep problems` takes its figures, which are compared by their times
over the copy, best on the same machine.

A figure is the median of 11 samples of about 2 ms each, or of one launch that takes longer, launches one behind the other: on a
stream between two events, and in a replayed CUDA graph, unless it cannot be captured. Sums are of 2^28 elements, recurrences of 2^26. The copy is cudaMemcpy (`copy_` of contiguous bytes) of half the bytes
that the scan must read and write once, the faster of stream and graph. Of a result the first row or column is compared with the same in
doubles, but for halves, which PyTorch carries in halves. FILE gets a line of JSON a figure.
"""

import argparse
import importlib.metadata
import json
import statistics
import sys

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

SAMPLES = 11
SAMPLE_MICROSECONDS = 2000.0
ELEMENTS = 1 << 28


def microseconds(torch, launches, count):
    """Of one of `count` launches, the median."""
    times = []
    for _ in range(SAMPLES):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        launches()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000 / count)
    return statistics.median(times)


def measure(torch, launch):
    """Microseconds on a stream and in a graph; None for a graph that cannot be captured."""
    launch()
    torch.cuda.synchronize()
    once = microseconds(torch, launch, 1)
    count = max(1, min(50, int(SAMPLE_MICROSECONDS / once)))

    def repeated():
        for _ in range(count):
            launch()

    stream = microseconds(torch, repeated, count)
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            repeated()
        replayed = microseconds(torch, graph.replay, count)
        del graph
    except RuntimeError as error:
        print(f"not in a graph: {str(error).splitlines()[0]}")
        replayed = None
    return {"stream_us": stream, "graph_us": replayed}


class Comparison:
    def __init__(self, torch, output, only):
        self.torch, self.output, self.only = torch, output, only
        self.copies = {}
        self.has_failed = False

    def copy(self, moved):
        """Microseconds of the copy that moves so many bytes, half of them read."""
        if moved not in self.copies:
            half = (moved // 2 + 15) // 16 * 16
            source = self.torch.zeros(half, dtype=self.torch.uint8, device="cuda")
            target = self.torch.empty_like(source)
            times = measure(self.torch, lambda: target.copy_(source))
            self.copies[moved] = min(time for time in times.values() if time is not None)
        return self.copies[moved]

    def add(self, subject, problem, element, line_elements, moved, launch, is_right):
        """`launch` returns the result; `is_right` looks at it, if it is given."""
        if self.only not in f"{subject} {problem} {element} {line_elements}":
            return
        right = is_right(launch()) if is_right else None
        self.has_failed |= right is False
        times = measure(self.torch, launch)
        best = min(time for time in times.values() if time is not None)
        copy = self.copy(moved)
        row = {
            "subject": subject, "problem": problem, "element": element, "line_elements": line_elements, "bytes": moved,
            **times, "copy_us": copy, "times_the_copy": best / copy, "is_right": right,
        }
        print(f"{subject:24} {problem:19} {element:5} {line_elements:>10} {best:>11.1f} us {best / copy:>9.2f}"
              f"{'  WRONG' if right is False else ''}", flush=True)
        if self.output:
            print(json.dumps(row), file=self.output, flush=True)


def is_near(found, exact):
    return bool(((found.double() - exact).abs() <= 1e-4 * exact.abs().clamp(min=1)).all())


def cumulative_sums(comparison, torch):
    for element, kind in [("f32", torch.float32), ("f16", torch.float16), ("bf16", torch.bfloat16)]:
        x = torch.randint(-1, 2, (ELEMENTS,), device="cuda", dtype=torch.int8).to(kind)
        moved = 2 * x.numel() * x.element_size()

        def add(problem, line, rows, axis):
            """Of the rows of a matrix along an axis."""
            matrix = x.view(rows, -1)

            def is_right(found):
                return is_near(found.select(1 - axis, 0), torch.cumsum(matrix.select(1 - axis, 0).double(), 0))

            launch = lambda: torch.cumsum(matrix, axis)
            comparison.add("torch.cumsum", problem, element, line, moved, launch, is_right if element == "f32" else None)

        add("flat", ELEMENTS, 1, 1)
        if element == "f16":
            continue
        for power in [5, 7, 9, 10, 12, 14, 16, 20, 26]:
            add("rows", 1 << power, ELEMENTS >> power, 1)
        # As wide as this; narrower ones take seconds.
        for power in [10, 12, 16, 20, 24]:
            add("columns", ELEMENTS >> power, ELEMENTS >> power, 0)


if triton:

    @triton.jit
    def compose(factor_left, addend_left, factor_right, addend_right):
        return factor_left * factor_right, factor_right * addend_left + addend_right

    @triton.jit
    def scan_rows(a, b, h, length: tl.constexpr, block: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        carried = 0.0
        for first in range(0, length, block):
            places = row * length + first + tl.arange(0, block)
            factors, addends = tl.associative_scan((tl.load(a + places), tl.load(b + places)), 0, compose)
            states = factors * carried + addends
            tl.store(h + places, states)
            carried = tl.sum(tl.where(tl.arange(0, block) == block - 1, states, 0.0), 0)


def recurrences(comparison, torch):
    n = 1 << 26
    moved = 3 * n * 4
    a = torch.randint(0, 2, (n,), device="cuda").float() * 0.5 + 0.5
    b = torch.randint(-1, 2, (n,), device="cuda").float()

    def is_right_of(line):
        def is_right(found):
            h, exact = 0.0, []
            for factor, addend in zip(a[:line].tolist(), b[:line].tolist()):
                h = factor * h + addend
                exact.append(h)
            return is_near(found.reshape(-1)[:line], torch.tensor(exact, device="cuda", dtype=torch.double))

        return is_right

    if triton:
        h = torch.empty_like(b)
        for line in [1 << power for power in [10, 12, 13, 14, 16, 20]]:
            for block in [block for block in [1024, 2048, 4096, 8192] if block <= line]:

                def launch(line=line, block=block):
                    scan_rows[(n // line,)](a, b, h, line, block, num_warps=8)
                    return h

                subject = f"triton, blocks of {block}"
                comparison.add(subject, "recurrence", "f32", line, moved, launch, is_right_of(line))
    else:
        print("Triton is not installed: its recurrences are not measured")
    try:
        from accelerated_scan.warp import scan
    except ImportError:
        print("accelerated-scan is not installed: its recurrences are not measured")
        return
    print(f"accelerated-scan {importlib.metadata.version('accelerated-scan')}")
    for shape in [(8, 1024, 8192), (1, 1024, 65536)]:
        gates, tokens = a.view(shape), b.view(shape)
        launch = lambda gates=gates, tokens=tokens: scan(gates, tokens)
        comparison.add("accelerated-scan", "recurrence", "f32", shape[2], moved, launch, is_right_of(shape[2]))


def main():
    parser = argparse.ArgumentParser(description="PyTorch, Triton and accelerated-scan beside cudaMemcpy")
    parser.add_argument("--output", help="a file for a line of JSON a figure; it must not be there yet")
    parser.add_argument("--only", default="", help="a word of the lines to measure, such as 'rows' or 'triton'")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is not installed: pip install torch")
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    output = None
    if arguments.output:
        try:
            output = open(arguments.output, "x", encoding="utf-8")
        except OSError as error:
            sys.exit(f"{arguments.output}: {error.strerror}; choose another file")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}")
    if triton:
        print(f"Triton {triton.__version__}")
    print(f"{'subject':24} {'problem':19} {'type':5} {'of a line':>10} {'time':>14} {'x copy':>9}")
    comparison = Comparison(torch, output, arguments.only)
    with torch.no_grad():
        cumulative_sums(comparison, torch)
        recurrences(comparison, torch)
    if comparison.has_failed:
        sys.exit("a result is wrong")


if __name__ == "__main__":
    main()
