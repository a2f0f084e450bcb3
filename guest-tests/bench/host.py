# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures without guests: a socket between two processes, alone or beside others that spin, as guests do that poll; and two
cards in one process."""
import functools
import os
import re
import subprocess

from harness import paths
from harness.guest import GuestError

from .contenders import CARDS, SOCKETS
from .figures import Figures

OUT = os.path.join(paths.BUILD, 'bench')
CARDS_PROGRAM = os.path.join(paths.BUILD, 'unit', 'cards')
SOURCE = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'socket-ceiling.c')
CARDS_OPTIONS = {'ib-cards': (), 'roce-cards': ('--roce',)}
# Of the cards' table: kind, operation, bytes, queue pairs, ns a message and a packet; MB and thousands a second are left out.
CARDS_ROW = re.compile(r'(?:ib|roce) +(\S.*?) +(\d+) +(\d+) +([\d.]+) +([\d.]+) +[\d.]+ +[\d.]+')


@functools.cache
def socket_program():
    os.makedirs(OUT, exist_ok=True)
    program = os.path.join(OUT, 'socket-ceiling')
    subprocess.run(['gcc', '-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-o', program, SOURCE], check=True)
    return program


def output_of(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if result.returncode:
        raise GuestError(f'{" ".join(result.args)}: status {result.returncode}: {result.stderr}')
    return result.stdout


def socket_bandwidth(name, size, seconds):
    return float(output_of(socket_program(), 'bandwidth', size, seconds, SOCKETS[name]))


def socket_latency(name, size, seconds):
    """Average, median and 99th percentile of one way."""
    return [float(word) for word in output_of(socket_program(), 'latency', size, seconds, SOCKETS[name]).split()]


def cards_rows(output):
    """By operation, bytes and queue pairs: nanoseconds a message and a packet."""
    found = {}
    for line in output.splitlines():
        row = CARDS_ROW.fullmatch(line.strip())
        if row:
            found[row[1], int(row[2]), int(row[3])] = float(row[4]), float(row[5])
    if not found:
        raise GuestError(f'the cards say nothing:\n{output}')
    return found


def cards(field, turns, plan):
    """Two cards with nothing between them: time of the processor that both need."""
    def measure(name):
        return cards_rows(output_of(CARDS_PROGRAM, *CARDS_OPTIONS[name], *plan.cards_options))

    kinds = [name for name in CARDS if name.split('-')[0] in {chosen.split('-')[0] for chosen in field.chosen}]
    found = {name: rounds[0] for name, rounds in turns.take('cards', kinds, measure).items()}
    for case in dict.fromkeys(case for cases in found.values() for case in cases):
        operation, size, qps = case
        times = {name: cases[case] for name, cases in found.items() if case in cases}
        # Caches too small for what is in use miss.
        name = f'cards {operation.replace("small caches", "misses")}' + (f', {qps} QPs' if qps > 1 else '')
        yield Figures(name, size, 'ns', {card: time[0] for card, time in times.items()}, qps=qps)
        if any(time[0] != time[1] for time in times.values()):
            yield Figures(f'{name}, a packet', size, 'ns', {card: time[1] for card, time in times.items()}, qps=qps)
        yield Figures(f'{name}, packets', size, 'k/s', {card: 1e6 / time[1] for card, time in times.items()}, qps=qps)
