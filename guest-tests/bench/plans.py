# SPDX-License-Identifier: GPL-2.0-or-later
"""How much is measured. A figure of bandwidth or rate is the median of several rounds, a latency the least of them: where
processors are few, a round may measure the host's scheduler instead."""


class Plan:
    sizes = [2, 64, 512, 4096, 65536, 1048576, 8388608]
    seconds = 2  # of a steady run; no more than 3, see perftest.py
    rounds = 2
    short_sizes = [64, 65536, 1048576]
    latency_sizes = [2, 64, 4096]
    latency_messages = 1000
    latency_rounds = 3
    queue_pairs = [1, 8, 64]
    atomics = [('fetch-and-add', 'FETCH_AND_ADD'), ('compare-and-swap', 'CMP_AND_SWAP')]
    verb_seconds = 1
    mtus = [1500, 9000]
    tcp_seconds = 3
    ping_seconds = 2
    socket_seconds = 0.5
    cards_options = ()


class Quick(Plan):
    """That all of it works."""
    sizes = [65536]
    seconds = 1
    rounds = 1
    short_sizes = [65536]
    latency_sizes = [2]
    latency_messages = 200
    latency_rounds = 1
    queue_pairs = [1, 8]
    verb_seconds = 0.2
    mtus = [9000]
    tcp_seconds = 1
    ping_seconds = 1
    socket_seconds = 0.1
    cards_options = ('--rounds=1', '--qps=1')
