#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmark: how it reports and compares, and that it runs. What it measures is not looked at: machines differ."""
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile

from bench import compare, figures, host, objects, report, sweep
from bench.figures import Figures
from bench.turns import Turns
from harness import paths, tap
from harness.check import expect
from harness.guest import GuestError
from harness.patience import patient

BENCH = os.path.join(paths.TOP, 'guest-tests', 'bench', 'bench.py')
CARDS = '''cards operation               bytes    QPs ns/message ns/packet      MB/s       k/s
ib    write                       2      1      858.4     858.4       2.3    1164.9
ib    fetch and add               8      1      767.9     767.9      10.4    1302.2
ib    write, small caches      4096     64     2269.0    2269.0    1805.2     440.7
ib    write                   65536      1    16116.7    1007.3    4066.3      62.0
'''
SWEEP = ''' bytes    QPs  lines  ways      ns        k/s   MPT %   MTT %   misses
    64      1     16     2     500      990.1  100.00  100.00   0.0000
    64   1024     16     4     500     1073.8   48.96   42.89   5.9180
    64   1024     16     2     500     1007.8   27.30   39.21   7.3810
    64      1   4096     2     500      990.1  100.00  100.00   0.0000
    64   1024   4096     2     500    49696.7  100.00  100.00   0.0000
'''


def folder():
    os.makedirs(paths.RUN, exist_ok=True)
    return tempfile.mkdtemp(prefix='bench-', dir=paths.RUN)


def bandwidths():
    return Figures('write bandwidth', 65536, 'MB/s', {'ib-stream': 2000.0, 'rxe': 40.0, 'socket': 4000.0}, mode='steady')


def latencies():
    return Figures('write latency', 2, 'us', {'ib-stream': 50.0, 'roce-netdev': 100.0, 'rxe': 200.0})


# Reports

def test_rows():
    expected = {'name': 'write bandwidth', 'bytes': 65536, 'unit': 'MB/s', 'contender': 'ib-stream', 'value': 2000.0,
                'mode': 'steady'}
    rows = bandwidths().rows()
    expect('the first row', rows[0] == expected, rows)
    expect('one a contender', [row['contender'] for row in rows] == ['ib-stream', 'rxe', 'socket'], rows)


def test_lines():
    """A ratio above 1 is in favour of the contender, whether more or less is better."""
    columns = report.columns_of(['ib-stream', 'roce-netdev', 'rxe', 'socket'])
    expect('columns', columns == ['rxe', 'ib-stream', 'socket'], columns)
    found = [line.split() for line in report.lines(bandwidths(), columns)]
    expect('bandwidth', found[0] == ['write', 'bandwidth', '65536', 'ib-stream', '2000.00', 'MB/s', '50.00', '0.50'], found)
    expect('another contender', found[1] == ['rxe', '40.00', 'MB/s', '0.01'], found)
    found = [line.split() for line in report.lines(latencies(), columns)]
    expect('latency', found[0] == ['write', 'latency', '2', 'ib-stream', '50.00', 'us', '4.00'], found)
    expect('to both', found[1] == ['roce-netdev', '100.00', 'us', '2.00', '0.50'], found)


def test_json():
    where = folder()
    path = os.path.join(where, 'bench.json')
    rows = bandwidths().rows() + latencies().rows()
    figures.write(path, rows)
    expect('what was written', figures.read(path) == rows, figures.read(path))
    shutil.rmtree(where)


def test_plot():
    where = folder()
    rows = bandwidths().rows()
    expect('one size is no curve', not report.plot(where, rows), os.listdir(where))
    rows += Figures('write bandwidth', 64, 'MB/s', {'ib-stream': 30.0, 'rxe': 1.0}).rows()
    curves = report.curves(rows, 'write bandwidth')
    expect('by size', curves['rxe'] == [(64, 1.0), (65536, 40.0)] and len(curves['socket']) == 1, curves)
    drawn = report.plot(where, rows)
    expect('a plot, if there is what draws it', drawn == bool(shutil.which('gnuplot')), drawn)
    expect('its file', drawn == os.path.exists(os.path.join(where, 'bench.svg')), os.listdir(where))
    shutil.rmtree(where)


# Comparing

def test_compare():
    old = bandwidths().rows() + latencies().rows()
    new = Figures('write bandwidth', 65536, 'MB/s', {'ib-stream': 3000.0, 'ib-shm': 1.0}).rows()
    new += Figures('write latency', 2, 'us', {'ib-stream': 25.0}).rows()
    lines = [line.split() for line in compare.comparison(old, new)]
    expect('more is better', lines[1][-5:] == ['ib-stream', '2000.00', '3000.00', '1.50', 'MB/s'], lines)
    expect('less is better', lines[2][-5:] == ['ib-stream', '50.00', '25.00', '2.00', 'us'], lines)
    expect('all', lines[3][-2:] == ['ib-stream', '1.73'], lines)
    alone = [' '.join(line) for line in lines[4:]]
    expect('what has no partner', alone == ['only in the old run: 4 rows', 'only in the new run: 1 rows'], alone)


def test_compare_units():
    """A row whose unit has changed is not compared."""
    old, new = ([{'name': 'commands', 'bytes': 0, 'unit': unit, 'contender': 'rxe', 'value': 1}] for unit in ('/s', 'k/s'))
    expect('none', not list(compare.pairs(old, new)), old, new)


# What programs say

def test_cards():
    found = host.cards_rows(CARDS)
    wanted = {('write', 2, 1): (858.4, 858.4), ('fetch and add', 8, 1): (767.9, 767.9),
              ('write, small caches', 4096, 64): (2269.0, 2269.0), ('write', 65536, 1): (16116.7, 1007.3)}
    expect('rows', found == wanted, found)


def test_sweep():
    """Its rows, the tables of them, and the plot, if there is what draws it."""
    rows = sweep.rows_of(SWEEP)
    expect('five', len(rows) == 5, rows)
    expect('the third', rows[2] == {'bytes': 64, 'qps': 1024, 'lines': 16, 'ways': 2, 'latency_ns': 500, 'rate': 1007.8,
                                    'mpt_hits': 27.3, 'mtt_hits': 39.21, 'misses': 7.381}, rows)
    found = [line.split() for line in sweep.tables(rows)]
    expect('sizes, and a line for each number of queue pairs',
           found[1:4] == [['QPs', '16', '4096'], ['1', '990', '990'], ['1024', '1008', '49697']], found)
    where = folder()
    drawn = sweep.plot(where, rows)
    expect('its file', drawn == bool(shutil.which('gnuplot')) == os.path.exists(os.path.join(where, 'sweep.svg')), drawn)
    shutil.rmtree(where)


def test_rates():
    found = objects.rates('commands: 47167.1 a second\nregistrations of 4096 bytes: 13721.8 a second\n')
    expect('rates', found == {'commands': 47167.1, 'registrations of 4096 bytes': 13721.8}, found)


def test_turns():
    """In turn; what fails is tried again, and left out from then on if it fails again."""
    asked, turns = [], Turns()

    def measure(name):
        asked.append(name)
        if name == 'bad' or asked.count('lame') == 1 and name == 'lame':
            raise GuestError('no')
        return len(asked)

    with contextlib.redirect_stderr(io.StringIO()):
        found = turns.median('it', ['good', 'lame', 'bad'], measure, 2)
        turns.take('it', ['rxe'], lambda name: measure('bad'))
    expect('in turn', asked == ['good', 'lame', 'lame', 'bad', 'bad', 'good', 'lame', 'bad', 'bad'], asked)
    expect('medians', found == {'good': 3.5, 'lame': 5}, found)
    expect('what went wrong', turns.failures == ['it, bad: no'] and len(turns.repeated) == 3, turns.failures, turns.repeated)
    expect('what is not ours', turns.missing == ['it, rxe: no'], turns.missing)


# All of it

def bench(*arguments):
    """The rows of a quick run."""
    where = folder()
    result = subprocess.run([sys.executable, BENCH, '--quick', '--out', where, *arguments], capture_output=True, text=True,
                            timeout=patient(540), check=False)
    expect('a run to its end', result.returncode == 0, result.stdout[-4000:], result.stderr[-4000:])
    rows = figures.read(os.path.join(where, 'bench.json'))
    shutil.rmtree(where)
    expect('figures', rows and all(row['value'] > 0 for row in rows), rows)
    return rows


# What `make check` runs of it, and the names that come of that beside the bandwidths.
SOME = 'cards,bandwidth,objects'
SOME_NAMES = {'commands', 'registrations', 'queue pairs', 'completion queues'}


@tap.seconds(600)
def test_run():
    rows = bench('--contenders', 'ib-stream,socket,socket-beside', *([] if tap.LONG else ['--parts', SOME]))
    found = {row['name'] for row in rows if row['contender'] == 'ib-stream'}
    wanted = SOME_NAMES | {f'{kind} bandwidth' for kind in ('send', 'write', 'read')}
    if tap.LONG:
        wanted |= {f'{kind} {what}' for kind in ('send', 'write', 'read') for what in (
            'bandwidth, short', 'latency', 'latency median', 'latency p99')}
        wanted |= {'write bandwidth, 8 QPs', 'message rate, 1 QP', 'message rate, 8 QPs', 'fetch-and-add rate',
                   'compare-and-swap rate', 'fetch-and-add latency', 'CPU seconds a GB', 'CPU seconds a GB, without guests'}
    expect('all names', wanted <= found, wanted - found)
    contenders = {row['contender'] for row in rows if row['name'] == 'write bandwidth' and row['bytes'] == 65536}
    expect('sockets beside', contenders == {'ib-stream', 'socket', 'socket-beside'}, contenders)
    expect('cards alone', any(row['name'] == 'cards write' and row['contender'] == 'ib-cards' for row in rows), rows)


@tap.only_long
@tap.seconds(600)
def test_run_ethernet():
    found = {row['name'] for row in bench('--contenders', 'virtio-net', '--parts', 'tcp,ping')}
    expect('all names', found == {'TCP bandwidth', 'TCP bandwidth, back', 'TCP bandwidth, 4 streams', 'ping rate'}, found)


if __name__ == '__main__':
    tap.main()
