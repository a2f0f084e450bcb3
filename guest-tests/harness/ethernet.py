# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes by the Ethernet interfaces of RoCE cards, beside RDMA."""
import re

from . import verbs, wait


def counted(guest, protocol, name):
    """A counter of the guest's Linux, of all of its interfaces: Icmp InEchoReps, Udp NoPorts."""
    names, values = re.findall(rf'^{protocol}: (.*)$', guest.run('cat /proc/net/snmp').output, re.M)
    return int(dict(zip(names.split(), values.split()))[name])


class Echoes:
    """Answers to pings of IPv4 that a guest has had since. A ping that has had some waits for the last ones only twice as long as for
    the slowest of these, which may be a few milliseconds: what it says was lost may only be late."""

    def __init__(self, guest):
        self.guest, self.before = guest, counted(guest, 'Icmp', 'InEchoReps')

    def wait(self, count):
        wait.until(lambda: counted(self.guest, 'Icmp', 'InEchoReps') - self.before >= count,
                   lambda: f'{count} answers: {counted(self.guest, "Icmp", "InEchoReps") - self.before}', 10)


def iperf(both, options):
    """TCP from the second guest to the first; options: of iperf3's client."""
    server = both.a.spawn('exec iperf3 -s -1')
    verbs.wait_listening(server, 5201)
    verbs.finish([both.b.spawn(f'exec iperf3 -c {both.a.card.address()} {options}'), server])
