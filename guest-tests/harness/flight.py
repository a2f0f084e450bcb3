# SPDX-License-Identifier: GPL-2.0-or-later
"""What of flight recorders, and of a failure, is worth a screen. Nothing here asks anybody for anything."""
import collections
import re

SCREEN = 50  # lines
MOST_OF_CARD = 12  # of a recorder's lines
LEAST_OF_CARD = 4  # less is no story
ALL_CARDS = 26  # lines, with their headings
LATEST = 3  # of a card, whatever they are about
MOST_NOTES = 4
WIDTH = 200

BROKEN = {'HOST_FAULT', 'WQE_ERROR', 'CQ_ERROR', 'SRQ_ERROR', 'V2P_ERROR', 'NAK_TX', 'NAK_RX', 'TIMEOUT', 'PACKET_DROP'}
FLUSHED = 5  # a syndrome: what is still queued when a QP goes into the error state
DROPPED_IN_ERROR = re.compile(r'PACKET_DROP .* reason QP_STATE\b')
IN_ERROR = re.compile(r'QP_STATE .* new (ERR|6)\b')

# name: of machine and card. recorder, queues: their texts, as lists of lines.
Card = collections.namedtuple('Card', 'name recorder queues')


class Entry:
    """A line of a recorder: a time, a kind, and numbers with their names."""

    def __init__(self, line):
        self.kind = (line.split() + ['', ''])[1]
        self.numbers = numbers_of(line)
        self.is_drop_in_error = bool(DROPPED_IN_ERROR.search(line))
        self.enters_error = bool(IN_ERROR.search(line))

    @property
    def qpn(self):
        """The card's QP that it is about. What is sent has only the number of the peer's."""
        received = self.numbers.get('dqpn') if self.kind in ('RX', 'LOOP') else None
        return self.numbers.get('qpn', received)

    @property
    def is_broken(self):
        return self.kind in BROKEN or (self.kind == 'CQE' and self.numbers.get('syndrome', 0) != 0)

    @property
    def is_flushed(self):
        return self.kind == 'CQE' and self.numbers.get('syndrome') == FLUSHED

    def is_about(self, qpn, peers):
        """peers: numbers of its peers' QPs; if none is known, whatever is sent may be the QP's."""
        if self.kind in ('TX', 'LOOP') and 'qpn' not in self.numbers:
            return self.qpn == qpn or self.numbers.get('dqpn') in peers or (self.kind == 'TX' and not peers)
        return self.qpn == qpn


def numbers_of(line):
    found = re.findall(r'(\w+) (0x[0-9a-f]+|\d+)\b', line)
    return {name: int(value, 16 if value.startswith('0x') else 10) for name, value in found}


def consequences(entries):
    """The indices of those that are about a QP in the error state, or about flushed work. The change of state may have been forgotten."""
    found, in_error = set(), set()
    for number, entry in enumerate(entries):
        if entry.is_flushed or entry.is_drop_in_error or entry.qpn in in_error:
            found.add(number)
        if entry.enters_error:
            in_error.add(entry.qpn)
        elif entry.kind == 'QP_STATE':
            in_error.discard(entry.qpn)
    return found


def broken(entries):
    """The index of the last entry that says that something broke, best one that names a QP; None: there is none. What is only a
    consequence comes last."""
    found = [number for number, entry in enumerate(entries) if entry.is_broken]
    follow = consequences(entries)
    causes = [number for number in found if number not in follow]
    for chosen in [number for number in causes if entries[number].qpn is not None], causes, found:
        if chosen:
            return chosen[-1]
    return None


def peers_of(qpn, queues):
    """Whom a QP is connected to, if the line of the QP says so."""
    lines = [numbers_of(line) for line in queues]
    return {numbers['dqpn'] for numbers in lines if numbers.get('qp') == qpn and numbers.get('dqpn')}


def by_nearness(numbers, cause):
    """Two before it for each one behind it."""
    return sorted(numbers, key=lambda number: cause - number if number <= cause else 2 * (number - cause))


def excerpt(recorder, queues=(), most=MOST_OF_CARD):
    """Of a recorder, the line that says what broke last, those about the same QP that are next to it, most of them before it, and
    the very last lines; if no QP is named, lines of all; if nothing broke, the last lines of all."""
    entries = [Entry(line) for line in recorder]
    cause = broken(entries)
    chosen = set(range(len(entries))[-LATEST:])
    about = range(len(entries))
    if cause is not None:
        chosen.add(cause)
        qpn = entries[cause].qpn
        if qpn is not None:
            peers = peers_of(qpn, queues)
            about = [number for number, entry in enumerate(entries) if entry.is_about(qpn, peers)]
    for number in by_nearness(about, len(entries) if cause is None else cause):
        if len(chosen) >= most:
            break
        chosen.add(number)
    return [recorder[number] for number in sorted(chosen)[-most:]]


def title(card):
    """What its excerpt is about."""
    entries = [Entry(line) for line in card.recorder]
    cause = broken(entries)
    if not entries:
        return f'{card.name}: nothing was recorded'
    if cause is None:
        return f'{card.name}: nothing broke; the last of {len(entries)} lines'
    qpn = entries[cause].qpn
    return f'{card.name}: {entries[cause].kind}{"" if qpn is None else f" of QP {qpn:#x}"}; from {len(entries)} lines'


def of_cards(cards):
    """Lines about as many cards as there is room for, those first on which something broke."""
    cards = sorted(cards, key=lambda card: broken([Entry(line) for line in card.recorder]) is None)
    fit = min(len(cards), ALL_CARDS // (LEAST_OF_CARD + 1))
    found = []
    for card in cards[:fit]:
        most = min(MOST_OF_CARD, ALL_CARDS // fit - 1)
        found += [title(card), *excerpt(card.recorder, card.queues, most)]
    if len(cards) > fit:
        found.append(f'and {len(cards) - fit} cards more')
    return found


def cut(lines, most):
    """The beginning and the end, which say most."""
    if len(lines) <= most:
        return list(lines)
    head = most // 3
    tail = most - head - 1
    return [*lines[:head], f'[... {len(lines) - head - tail} lines ...]', *lines[len(lines) - tail:]]


def cut_blocks(blocks, most):
    """All blocks, each cut to its share; what short ones leave is for the longer ones."""
    found = {}
    for left, number in enumerate(sorted(range(len(blocks)), key=lambda number: len(blocks[number]))):
        found[number] = cut(blocks[number], max(most // (len(blocks) - left), 3))
        most -= len(found[number])
    return [line for number in range(len(blocks)) for line in found[number]]


def screen(failure, cards, where, notes=()):
    """failure: blocks of lines, what a case has failed of; where: the rest of it lies; notes: what could not be had. What is wrong
    comes last: of a long output it is the end that is read."""
    above = [*cut(notes, MOST_NOTES), *of_cards(cards)]
    lines = above + cut_blocks(failure, SCREEN - 1 - len(above))
    return [f'all that it left: {where}', *(line if len(line) <= WIDTH else line[:WIDTH] + '...' for line in lines)]
