# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes by the Ethernet interfaces of RoCE cards, beside RDMA."""
from . import verbs


def iperf(both, options):
    """TCP from the second guest to the first; options: of iperf3's client."""
    server = both.a.spawn('exec iperf3 -s -1')
    verbs.wait_listening(server, 5201)
    verbs.finish([both.b.spawn(f'exec iperf3 -c {both.a.card.address()} {options}'), server])
