# SPDX-License-Identifier: GPL-2.0-or-later
"""How figures are shown: lines of a table, with ratios that are above 1 where the contender is better; and a plot."""
import os
import shutil
import subprocess

from .contenders import BASES, bases
from .figures import times_better

NAME_WIDTH = 37


def width(base):
    return max(9, len(base) + 3)


def titles(columns):
    return (f'{"":{NAME_WIDTH}}{"bytes":>8} {"contender":<14}{"figure":>12} {"":5}' +
            ''.join(f'{"/" + base:>{width(base)}}' for base in columns)).rstrip()


def columns_of(chosen):
    """To whom figures of these contenders are put in proportion."""
    return [base for base in BASES if base in chosen and any(base in bases(name) for name in chosen)]


def ratio(figures, name, base):
    if base not in bases(name) or base not in figures.values:
        return None
    return times_better(figures.unit, figures.values[name], figures.values[base])


def lines(figures, columns):
    """One a contender; the first one names what it is."""
    found = []
    for name, value in figures.values.items():
        what, size = ('', '') if found else (figures.name, figures.size or '')
        text = f'{what:{NAME_WIDTH}}{size:>8} {name:<14}{value:12.2f} {figures.unit:<5}'
        for base in columns:
            times = ratio(figures, name, base)
            text += f'{"" if times is None else format(times, ".2f"):>{width(base)}}'
        found.append(text.rstrip())
    return found


PLOT = '''set terminal svg size 1200,760 font "sans,11" background "white"
set output "{out}/bench.svg"
set multiplot layout 2,3
set logscale xy
set key below font ",9" maxrows 3 samplen 2
set xlabel "bytes"
set xtics ({tics}) nomirror
{plots}
unset multiplot
'''
TICS = {2: '2', 64: '64', 512: '512', 4096: '4k', 65536: '64k', 1048576: '1M', 8388608: '8M'}
PANELS = [(f'{kind} {what}', unit) for what, unit in (('bandwidth', 'MB/s'), ('latency', 'us'))
          for kind in ('send', 'write', 'read')]


def curves(rows, name):
    """By contender: (bytes, value), smallest first."""
    found = {}
    for row in rows:
        if row['name'] == name:
            found.setdefault(row['contender'], []).append((row['bytes'], row['value']))
    return {contender: sorted(points) for contender, points in found.items()}


def gnuplot(commands):
    """False: it is not there."""
    if not shutil.which('gnuplot'):
        return False
    subprocess.run(['gnuplot'], input=commands, text=True, check=True)
    return True


def panel(out, name, unit, found):
    """Commands of gnuplot for one plot of curves, by their titles, whose points are in a file of its own."""
    data = os.path.join(out, f'{name.replace(" ", "-")}.dat')
    with open(data, 'w') as file:
        for points in found.values():
            file.write(''.join(f'{x} {y}\n' for x, y in points) + '\n\n')
    drawn = ', '.join(f'"{data}" index {number} using 1:2 with linespoints title "{title}"'
                      for number, title in enumerate(found))
    return f'set title "{name}, {unit}"\nplot {drawn}'


def is_drawn(rows, name):
    return any(len(points) > 1 for points in curves(rows, name).values())


def plot(out, rows):
    """bench.svg in the folder `out`, by gnuplot; False: it is not there, or there is nothing to draw."""
    drawn = [each for each in PANELS if is_drawn(rows, each[0])]
    if not drawn:
        return False
    sizes = sorted({size for name, _ in drawn for points in curves(rows, name).values() for size, _ in points})
    tics = ', '.join(f'"{TICS.get(size, size)}" {size}' for size in sizes)
    plots = '\n'.join(panel(out, name, unit, curves(rows, name)) for name, unit in drawn)
    return gnuplot(PLOT.format(out=out, tics=tics, plots=plots))
