#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make bench-sweep` shows: messages a second of two cards in simulated time, by the caches of VirtToPhys, the latency of
memory and the number of queue pairs (hw-rdma-hca/bench/sweep.c says what that time is made of).

Prints tables. The figures (sweep.json) and a plot (sweep.svg) go to build/bench."""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
sys.dont_write_bytecode = True

from bench import figures, report  # noqa: E402
from bench.host import OUT, output_of  # noqa: E402
from harness import paths  # noqa: E402

QPS = [4 ** n for n in range(8)]
COLUMNS = [('bytes', int), ('qps', int), ('lines', int), ('ways', int), ('latency_ns', int), ('rate', float), ('mpt_hits', float),
           ('mtt_hits', float), ('misses', float)]
WAYS = 2  # where not all are tried
WAYS_QPS = 1024
SHOWN = [('rate', 'thousands of messages a second', '.0f'), ('mpt_hits', 'hits of the MPT, per cent', '.1f'),
         ('mtt_hits', 'hits of the MTT, per cent', '.1f')]
PLOT = '''set terminal svg size 1300,1150 font "sans,11" background "white"
set output "{out}/sweep.svg"
set multiplot layout 3,3
set key outside right center vertical font ",9" samplen 1.5 spacing 1.1
set grid xtics ytics lt 1 lc rgb "#dddddd" lw 0.5
set border 3
set tics nomirror
set format y "%.0f"
set logscale x 2
{lines}
{plots}
unset multiplot
'''
COLOURS = ['#1b1b6b', '#2a6fbb', '#1f9e89', '#6ab02c', '#e0a000', '#e0651a', '#c01818']  # most lines first
TICS = {1024: '1k', 4096: '4k', 16384: '16k', 65536: '64k'}


def rows_of(text):
    return [{name: kind(word) for (name, kind), word in zip(COLUMNS, line.split())} for line in text.splitlines()[1:]]


def run(qps):
    return rows_of(output_of(os.path.join(paths.BUILD, 'unit', 'sweep'), f'--qps={qps}'))


def chosen(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def different(rows, key):
    return sorted({row[key] for row in rows})


def table(rows, value, form):
    """Lines: a row for each number of queue pairs, a column for each size."""
    sizes = different(rows, 'lines')
    found = [f'{"QPs":>8}' + ''.join(f'{lines:>10}' for lines in sizes)]
    for qps in different(rows, 'qps'):
        values = {row['lines']: row[value] for row in chosen(rows, qps=qps)}
        found.append(f'{qps:>8}' + ''.join(f'{values[lines]:>10{form}}' for lines in sizes))
    return found


def tables(rows):
    found = []
    for size in different(rows, 'bytes'):
        for latency in different(rows, 'latency_ns'):
            for value, text, form in SHOWN:
                found += [f'{text}, by lines of either cache: writes of {size} bytes, memory takes {latency} ns',
                          *table(chosen(rows, bytes=size, latency_ns=latency, ways=WAYS), value, form), '']
    return found


def short(number):
    return TICS.get(number, str(number))


def curves(rows, key, value):
    """By lines of a cache, most first, as they are in the plot: (key, value)."""
    return {f'{short(lines)} lines': sorted((row[key], row[value]) for row in chosen(rows, lines=lines))
            for lines in reversed(different(rows, 'lines'))}


def axes(rows, key, label, least, most=None):
    """A logarithmic axis has an end."""
    values = different(rows, key)
    tics = ', '.join(f'"{short(number)}" {number}' for number in values)
    return (f'set xlabel "{label}"\nset xtics ({tics})\nset xrange [{values[0] / 1.2}:{values[-1] * 1.2}]\n'
            f'{"set" if most else "unset"} logscale y\nset yrange [{least}:{most or "*"}]\n')


def panels(out, rows):
    usual = chosen(rows, ways=WAYS)
    found = []
    for size in different(rows, 'bytes'):
        rates = different(chosen(usual, bytes=size), 'rate')
        for latency in different(rows, 'latency_ns'):
            some = chosen(usual, bytes=size, latency_ns=latency)
            found.append(axes(some, 'qps', 'queue pairs', rates[0] / 2, rates[-1] * 2) +
                         report.panel(out, f'{size} bytes, memory {latency} ns', 'k/s', curves(some, 'qps', 'rate')))
    some = chosen(usual, bytes=64, latency_ns=500)
    for value, name in ('mpt_hits', 'MPT hits'), ('mtt_hits', 'MTT hits'):
        found.append(axes(some, 'qps', 'queue pairs', 0) +
                     report.panel(out, f'{name}, 64 bytes, 500 ns', 'per cent', curves(some, 'qps', value)))
    some = chosen(rows, bytes=64, latency_ns=500, qps=WAYS_QPS)
    found.append(axes(some, 'ways', 'ways', 0) +
                 report.panel(out, f'misses a message, {WAYS_QPS} QPs, 500 ns', '64 bytes', curves(some, 'ways', 'misses')))
    return '\n'.join(found)


def plot(out, rows):
    """sweep.svg in the folder `out`; False: there is no gnuplot."""
    lines = '\n'.join(f'set linetype {n} lc rgb "{colour}" lw 1.5 pt 7 ps 0.5' for n, colour in enumerate(COLOURS, 1))
    return report.gnuplot(PLOT.format(out=out, lines=lines, plots=panels(out, rows)))


def main():
    os.makedirs(OUT, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the longest first
        rows = sum(reversed(list(pool.map(run, reversed(QPS)))), [])
    print('\n'.join(tables(rows)))
    figures.write(os.path.join(OUT, 'sweep.json'), rows)
    drawn = plot(OUT, rows)
    print(f'{OUT}: sweep.json{" sweep.svg" if drawn else ""}')


if __name__ == '__main__':
    main()
