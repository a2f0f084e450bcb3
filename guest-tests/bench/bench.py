#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make bench` shows: our card and Linux's Soft-RoCE, one after the other in the same two guests with the same
programs, and the bare socket between two processes of the host as the ceiling. Soft-RoCE is at its strongest: a virtio
network card, an MTU of 9000, the generic CRC, -netdev stream. Bandwidths and rates are the median of several runs,
latencies the lowest median: where processors are few, a run may measure the host's scheduler instead. Prints a table; it
and a plot go to build/bench."""
import functools
import itertools
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
sys.dont_write_bytecode = True

from harness import links, paths, verbs  # noqa: E402
from harness.devices import RoceCard, SoftRoce  # noqa: E402
from harness.guest import GuestError  # noqa: E402
from harness.lab import Lab, Machine  # noqa: E402

OUT = os.path.join(paths.BUILD, 'bench')
SIZES = [64, 512, 4096, 32768, 262144, 1048576]
BANDWIDTH = ['send', 'write', 'read']
LATENCY_SIZES = [2, 64]
QPS = [1, 8]
STREAMS = [1, 4]
MTUS = [1500, 9000]
TCP_SECONDS = 5
REPEATS = 3
LATENCY_REPEATS = 5
# Columns of perftest's tables: average bandwidth and message rate; the median of the latencies.
AVERAGE, RATE, TYPICAL = 3, 4, 4
# The contenders' slots in both machines.
RXE, HCA = 0, 1


class Row:
    """A figure of each contender; higher is better, or not. ceiling: None where the socket has nothing like it."""

    def __init__(self, what, size, unit, more_is_better, hca, rxe, ceiling=None):
        self.what, self.size, self.unit, self.more_is_better = what, size, unit, more_is_better
        self.hca, self.rxe, self.ceiling = hca, rxe, ceiling

    @property
    def ratio(self):
        """How many times better the card is."""
        return self.hca / self.rxe if self.more_is_better else self.rxe / self.hca


def lab():
    """Two guests that have both contenders, each on a segment of its own."""
    machine = Machine(SoftRoce('net', subnet=0, mtu=9000), RoceCard('lan'))
    return Lab([machine, machine], {'net': links.stream(), 'lan': links.stream()})


def say(text=''):
    print(text, flush=True)


def count_for(size):
    return max(16, min(2000, 16 * 1048576 // size))


def median(values):
    return sorted(values)[len(values) // 2]


def one(server, client, program, options, slot, column):
    return verbs.perftest(server, client, program, options, timeout=300, slot=slot)[column]


def in_turn(both, program, options, column, repeats=REPEATS, choose=median):
    """Of each contender one of its figures, measured in turn, so that both meet the same machine."""
    found = {slot: [] for slot in (HCA, RXE)}
    for _ in range(repeats):
        for slot, figures in found.items():
            figures.append(verbs.measured(one, both.a, both.b, program, options, slot, column))
    return [choose(figures) for figures in found.values()]


@functools.cache
def ceiling(program, kind, size, count, choose=median):
    return choose([float(subprocess.run([program, kind, str(size), str(count)], check=True, capture_output=True,
                                        text=True).stdout) for _ in range(REPEATS)])


def measure(both, socket):
    for kind in BANDWIDTH:
        for size in SIZES:
            yield Row(f'{kind} bandwidth', size, 'MB/s', True,
                      *in_turn(both, f'ib_{kind}_bw', f'-s {size} -n {count_for(size)}', AVERAGE),
                      ceiling(socket, 'bandwidth', size, max(1000, min(200000, 268435456 // size))))
    for kind in BANDWIDTH:
        for size in LATENCY_SIZES:
            yield Row(f'{kind} latency', size, 'us', False,
                      *in_turn(both, f'ib_{kind}_lat', f'-s {size} -n 500', TYPICAL, LATENCY_REPEATS, min),
                      ceiling(socket, 'latency', size, 20000, min))
    for qps in QPS:
        hca_rate, rxe_rate = in_turn(both, 'ib_write_bw', f'-s 64 -q {qps} -n 2000', RATE)
        yield Row(f'message rate, {qps} QP{"s" if qps > 1 else ""}', 64, 'k/s', True, hca_rate * 1000, rxe_rate * 1000)


def line(row):
    top = f'{row.ceiling:12.1f}' if row.ceiling is not None else ' ' * 12
    return f'{row.what:24}{row.size:9}{row.hca:12.2f}{row.rxe:12.2f}{row.ratio:9.2f}{top}  {row.unit}'


def head():
    return f'{"":24}{"bytes":>9}{"rdma-hca":>12}{"Soft-RoCE":>12}{"ratio":>9}{"socket":>12}'


def tcp_rate(both, slot, streams):
    """MB/s that iperf3 moves between the interfaces of a contender."""
    server = both.a.spawn('exec iperf3 -s -1')
    verbs.wait_listening(server, 5201)
    client = both.b.spawn(f'exec iperf3 -J -c {both.a.devices[slot].address()} -P {streams} -t {TCP_SECONDS}')
    report = json.loads(verbs.finish([client, server])[0])
    return report['end']['sum_received']['bits_per_second'] / 8e6


def measure_tcp(both):
    """The interfaces: the card's Ethernet function, and the virtio network card that is under Soft-RoCE."""
    for mtu in MTUS:
        for guest in both.guests:
            for slot in (HCA, RXE):
                guest.run(f'ip link set {guest.devices[slot].interface} mtu {mtu}')
        for streams in STREAMS:
            found = {slot: [] for slot in (HCA, RXE)}
            for _ in range(REPEATS):
                for slot, figures in found.items():
                    figures.append(tcp_rate(both, slot, streams))
            yield Row(f'TCP, {streams} stream{"s" if streams > 1 else ""}', mtu, 'MB/s', True,
                      *(median(figures) for figures in found.values()))


def machine():
    with open('/proc/cpuinfo') as info:
        model = next((text.split(':', 1)[1].strip() for text in info if text.startswith('model name')), 'unknown CPU')
    return f'{os.cpu_count()} x {model}'


PLOT = '''set terminal svg size 900,360 font "sans,11" background "white"
set output "{out}/bench.svg"
set multiplot layout 1,3
set logscale xy
set key bottom right
set xlabel "bytes"
set xrange [32:2097152]
set xtics ("64" 64, "512" 512, "4k" 4096, "32k" 32768, "" 262144, "1M" 1048576) nomirror
set yrange [0.1:20000]
{plots}
unset multiplot
'''


def plot(rows):
    """Bandwidth over message size, by gnuplot."""
    plots = []
    for kind in BANDWIDTH:
        data = os.path.join(OUT, f'{kind}.dat')
        with open(data, 'w') as out:
            for row in rows:
                if row.what == f'{kind} bandwidth':
                    out.write(f'{row.size} {row.hca} {row.rxe} {row.ceiling}\n')
        plots.append(f'set title "{kind}, MB/s"\nplot ' + ', '.join(
            f'"{data}" using 1:{column} with linespoints title "{title}"'
            for column, title in ((2, 'rdma-hca'), (3, 'Soft-RoCE'), (4, 'socket'))))
    subprocess.run(['gnuplot'], input=PLOT.format(out=OUT, plots='\n'.join(plots)), text=True, check=True)


def main():
    tcp_only = sys.argv[1:] == ['--tcp']
    start = time.monotonic()
    os.makedirs(OUT, exist_ok=True)
    socket = os.path.join(OUT, 'socket-ceiling')
    source = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'socket-ceiling.c')
    subprocess.run(['gcc', '-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-o', socket, source], check=True)
    both = lab()
    try:
        both.start()
        text = [f'{machine()}, guests with {both.a.accelerator}', head()]
        say('\n'.join(text))
        rows = []
        for row in itertools.chain([] if tcp_only else measure(both, socket), measure_tcp(both)):
            rows.append(row)
            text.append(line(row))
            say(text[-1])
    except (GuestError, OSError) as error:
        both.stop(keep=True)
        print(f'rdma-hca: the benchmark failed: {error}', file=sys.stderr)
        sys.exit(1)
    both.stop()
    with open(os.path.join(OUT, 'bench.txt'), 'w') as out:
        out.write('\n'.join(text) + '\n')
    if not tcp_only:
        plot(rows)
    say(f'\nbuild/bench/bench.txt, build/bench/bench.svg ({time.monotonic() - start:.0f} s)')


if __name__ == '__main__':
    main()
