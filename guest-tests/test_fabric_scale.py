#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A large fabric: a fat tree of switches (hca-switch), cards without machines at its ends (fabric-cards), and a guest with the
subnet manager. 6 switches and 16 cards; in the long form (make check-long) 32 and 200. What it takes is printed, not judged."""
import contextlib
import functools
import itertools
import os
import re
import subprocess
import time

from harness import diags, fabric, paths, tap, wait
from harness.check import expect
from harness.devices import ManagedCard
from harness.guest import GuestError
from harness.lab import Machine
from harness.labs import kept
from harness.switches import Fabric

SPINES, LEAVES, CARDS = (8, 24, 200) if tap.LONG else (2, 4, 16)
SECONDS = 1800 if tap.LONG else 300
PROGRAM = os.path.join(paths.BUILD, 'unit', 'fabric-cards')
FIRST_SWITCH, FIRST_CARD = 0x525400fffe800001, 0x525400fffe0b0001  # GUIDs
FAR = 6  # ends that are looked at more closely
# Errors that a manager has where switches go while it asks them, and where its own port does.
KILLED = (*fabric.TIMEOUTS, r'ERR 3315', r'ERR 1F\w\w')


class Process:
    """What Linux says of a process of the host."""

    def __init__(self, pid):
        self._folder = f'/proc/{pid}'

    def mebibytes(self):
        return int(re.search(r'VmHWM:\s+(\d+) kB', self._read('status')).group(1)) / 1024

    def seconds(self):
        words = self._read('stat').rpartition(')')[2].split()
        return sum(map(int, words[11:13])) / os.sysconf('SC_CLK_TCK')

    def _read(self, name):
        with open(os.path.join(self._folder, name)) as file:
            return file.read()


class FatTree(Fabric):
    """Each leaf has a cable to each spine. The ends go round the leaves: the guest is the first, cards are the others."""

    def __init__(self):
        self.spines, self.leaves = range(SPINES), range(SPINES, SPINES + LEAVES)
        super().__init__([SPINES + end % LEAVES for end in range(1 + CARDS)], [*itertools.product(self.spines, self.leaves)])
        self.process = self._folder = self._log = None

    def _make(self, name):
        super()._make(name)
        self.paths = [f'{name}-end{end}' for end in range(1, 1 + CARDS)]

    def start(self, folder):
        super().start(folder)
        self._folder = folder
        self._log = os.path.join(folder, 'cards.log')
        with open(self._log, 'w') as log:
            self.process = subprocess.Popen([PROGRAM, f'--guid={FIRST_CARD - 1:#x}', *self.paths], cwd=folder,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self):
        """All, also where one has not ended well."""
        with contextlib.ExitStack() as stack:
            for switch in self.switches:
                stack.callback(switch.stop)
            stack.callback(self._stop_cards)

    def _stop_cards(self):
        if self.process:
            self.process.terminate()
            status = self.process.wait()
            with open(self._log) as log:
                said = log.read()
            if status or said:
                raise GuestError(f'fabric-cards ended with {status}: {said}')

    @contextlib.contextmanager
    def without(self, numbers):
        """Inside these switches are killed; then they are started."""
        switches = [self.switches[number] for number in numbers]
        for switch in switches:
            switch.kill()
        try:
            yield
        finally:
            for switch in switches:
                switch.start(self._folder)

    def guid_of_end(self, end, guest):
        return FIRST_CARD + end - 1 if end else fabric.port(guest).guid

    def cables(self, guest, but=()):
        """Pairs of ends: the node's GUID and the port's number. but: without those of these switches."""
        def end_of(switch, port):
            return FIRST_SWITCH + self.switches.index(switch), port

        pairs = [(end_of(*self.port_of_end(end)), (self.guid_of_end(end, guest), 1)) for end in range(1 + CARDS)]
        pairs += [(end_of(*self.port_of_trunk(trunk, 0)), end_of(*self.port_of_trunk(trunk, 1)))
                  for trunk in range(SPINES * LEAVES)]
        gone = {FIRST_SWITCH + number for number in but}
        return {frozenset(pair) for pair in pairs if not gone & {guid for guid, _ in pair}}

    def ports(self):
        """How many there are in each state, of the switches that run."""
        lines = [line for switch in self.switches if switch.process.poll() is None for line in switch.ask('ports')]
        states = re.findall(r' state=(\w+)', '\n'.join(lines))
        return {state: states.count(state) for state in states}

    def wait_ports(self, wanted, timeout=120):
        wait.until(lambda: self.ports() == wanted, lambda: f'{wanted}: {self.ports()}', timeout, pause=0.5)

    def tell(self, when):
        """What it takes by now."""
        processes = [Process(switch.process.pid) for switch in self.switches if switch.process.poll() is None]
        memory, busy = [each.mebibytes() for each in processes], [each.seconds() for each in processes]
        cards = Process(self.process.pid)
        print(f'# {when}: {len(processes)} switches: {max(memory):.1f} MiB the largest, {sum(memory):.0f} together, processor '
              f'{max(busy):.1f} s the busiest, {sum(busy):.1f} together; cards: {cards.mebibytes():.0f} MiB, {cards.seconds():.1f} s',
              flush=True)


class ScaleLab(fabric.FabricLab):
    """It waits for all links before the manager starts, and takes the time until the subnet is up."""

    @property
    def tree(self):
        return self.links['fabric']

    def wait_active(self):
        if not self.manager:
            self.tree.wait_ports({'init': all_ports()})
            self.tree.tell('before the manager')
            start = time.monotonic()
            self.managers.append(fabric.Manager(self.a))
            self.manager.wait_says(fabric.UP, timeout=SECONDS)
            print(f'# SUBNET UP after {time.monotonic() - start:.1f} s', flush=True)
            self.tree.wait_ports({'active': all_ports()})
            print(f'# all ports Active after {time.monotonic() - start:.1f} s', flush=True)
            self.tree.tell('after it')
        super().wait_active()

    def tell_sweeps(self):
        print(f'# opensm has swept the whole subnet {self.manager.log.count(fabric.UP)} times', flush=True)


def all_ports():
    """Of switches, with a cable."""
    return 1 + CARDS + 2 * SPINES * LEAVES


def make():
    machine = Machine(ManagedCard('fabric', managed=None), layers=('apps',))
    return ScaleLab([machine], {'fabric': FatTree()})


lab = functools.partial(kept, make)


def discovered():
    """What ibnetdiscover finds: cables, as of FatTree.cables(), and LIDs of ports by the nodes' GUIDs."""
    cables, lids, node = set(), {}, None
    for line in diags.run(lab().a, 'ibnetdiscover').splitlines():
        head = re.match(r'(?:Switch|Ca)\s+\d+ "[SH]-(\w+)"', line)
        port = re.match(r'\[(\d+)\](?:\(\w+\))?\s+"[SH]-(\w+)"\[(\d+)\]', line)
        lid = re.search(r'# (?:".*" base port 0 )?lid (\d+) lmc', line)
        if head:
            node = int(head[1], 16)
        if port:
            cables.add(frozenset({(node, int(port[1])), (int(port[2], 16), int(port[3]))}))
        if lid:
            lids[node] = int(lid[1])
    return cables, lids


def lids_of_cards(lids):
    return {guid: lid for guid, lid in lids.items() if FIRST_CARD <= guid < FIRST_CARD + CARDS}


def far_lids():
    """Of some ends at other leaves than the guest's."""
    found = lids_of_cards(discovered()[1])
    away = [found[guid] for guid in sorted(found) if (guid - FIRST_CARD + 1) % LEAVES]
    return away[::len(away) // FAR][:FAR]


def expect_cables(but=()):
    wanted, (cables, _) = lab().tree.cables(lab().a, but), discovered()
    expect('the cables', cables == wanted, f'missing: {sorted(map(sorted, wanted - cables))}',
           f'too many: {sorted(map(sorted, cables - wanted))}')


def expect_reached(lids):
    """All nodes answer by their LIDs. lids: by their GUIDs."""
    a = lab().a
    start = time.monotonic()
    query = f'smpquery -C {a.card.name} -P 1 -t {diags.TIMEOUT_MS} -e nodeinfo'
    numbers = ' '.join(map(str, sorted(lids.values())))
    output = a.run(f'for lid in {numbers}; do {query} $lid 2>&1 | sed "s/^/$lid /"; done', timeout=SECONDS).output
    found = {int(guid, 16): int(lid) for lid, guid in re.findall(r'^(\d+) Guid:\.*(\w+)$', output, re.M)}
    lost = [line for line in output.splitlines() if diags.LOST.search(line)]
    expect('all answer', found == lids and not lost, f'silent or wrong: {set(lids.items()) - set(found.items())}', *lost)
    print(f'# {len(lids)} nodes answered by their LIDs in {time.monotonic() - start:.1f} s', flush=True)


@tap.seconds(SECONDS)
def test_up():
    """The manager has all ports Active, and each has a LID of its own."""
    _, lids = discovered()
    expect('LIDs', len(lids) == len(set(lids.values())) == 1 + CARDS + SPINES + LEAVES and 0 not in lids.values(), lids)
    lab().tell_sweeps()


@tap.seconds(SECONDS)
def test_cables():
    """All that there are, between the right ports."""
    expect_cables()
    output = diags.run(lab().a, 'iblinkinfo')
    number = len(re.findall(r'Active/\s+LinkUp', output))
    expect('both ends of all cables', number == 2 * len(lab().tree.cables(lab().a)), output)


def expect_counting():
    """Ends that are far away count what passes them, and tell it."""
    for lid in far_lids():
        before, after = (diags.counters(lab().a, lid) for _ in range(2))
        expect('it counts', after['PortRcvPkts'] > before['PortRcvPkts'] > 0 and not after['PortRcvErrors'], before, after)


@tap.seconds(SECONDS)
def test_far_ends():
    """By a leaf, a spine and a leaf."""
    a = lab().a
    for lid in far_lids():
        output = diags.run(a, 'ibtracert', f'{fabric.lid(a)} {lid}')
        expect('three switches', output.count('->') == 4, output)
    expect_counting()


@tap.seconds(SECONDS)
def test_all_nodes():
    expect_reached(discovered()[1])


def expect_as_before(lids):
    """lids: those that there were."""
    wait.until(lambda: discovered()[1] == lids, lambda: f'the same LIDs: {discovered()[1]}', 60)
    expect_cables()
    expect_reached(lids)
    expect_counting()


@tap.seconds(SECONDS)
def test_spine_killed():
    """The manager leads all paths by the others; the spine comes back, and is as before."""
    both, tree = lab(), lab().tree
    manager, victim = both.manager, SPINES - 1
    lids = discovered()[1]
    with manager.expecting(*KILLED):
        start, since = time.monotonic(), len(manager.log)
        with tree.without([victim]):
            manager.wait_says(fabric.UP, since, timeout=SECONDS)
            print(f'# SUBNET UP {time.monotonic() - start:.1f} s after a spine was killed', flush=True)
            tree.wait_ports({'active': all_ports() - 2 * LEAVES, 'down': LEAVES})
            expect_cables(but=[victim])
            expect_reached({guid: lid for guid, lid in lids.items() if guid != FIRST_SWITCH + victim})
            expect_counting()
            start = time.monotonic()
        tree.wait_ports({'active': all_ports()}, timeout=SECONDS / 3)
        print(f'# all ports Active {time.monotonic() - start:.1f} s after it was started', flush=True)
        expect_as_before(lids)
    both.tell_sweeps()


@tap.seconds(SECONDS)
def test_all_killed():
    """No switch knows anything any more, and all links have been down."""
    both, tree = lab(), lab().tree
    lids, manager = discovered()[1], both.manager
    with manager.expecting(*KILLED):
        since = len(manager.log)
        with tree.without(range(SPINES + LEAVES)):
            # It may be in the midst of a sweep, and go on with what it has read of ports that come back at once as others: it
            # would take them for Active until its next look at all.
            manager.wait_says(fabric.NO_PORT, since)
            start = time.monotonic()
        tree.wait_ports({'active': all_ports()}, timeout=SECONDS / 3)
        print(f'# all ports Active {time.monotonic() - start:.1f} s after all switches were started', flush=True)
        both.wait_active()
        expect_as_before(lids)
    both.tell_sweeps()
    tree.tell('at the end')


if __name__ == '__main__':
    tap.main()
