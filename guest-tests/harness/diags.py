# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of infiniband-diags: that they get an answer to whatever they ask, and what they say."""
import contextlib
import re

from . import wait
from .check import expect
from .patience import patient

TIMEOUT_MS = patient(5000)
# What they say (-e) when an answer was late or has not come. Some of their questions have a shorter time, of their own: on a busy
# machine they are asked once more, which says nothing.
LOST = re.compile(rf'retry \d+ \(timeout {TIMEOUT_MS} |timeout after|timed out|(recv|send) failed')
SCRIPTS = ('ibhosts', 'ibnodes', 'ibrouters', 'ibswitches')  # which know fewer options


def spawn(guest, program, arguments=''):
    errors = '' if program in SCRIPTS else '-e'
    return guest.spawn(f'exec {program} -C {guest.card.name} -P 1 -t {TIMEOUT_MS} {errors} {arguments}')


def result(guest, program, arguments):
    """It gets its answers, whatever they are."""
    found = spawn(guest, program, arguments).wait(90, check=False)
    expect('an answer', not LOST.search(found.output), found)
    return found


def run(guest, program, arguments=''):
    """It gets its answers, and is content; gives what it printed."""
    found = result(guest, program, arguments)
    expect('content', found.status == 0, found)
    return found.output


def refused(guest, program, arguments, why='error status 0xc'):
    """Its question is answered by a refusal; why: a pattern of what it says of that."""
    found = result(guest, program, arguments)
    expect(f'refused ({why})', found.status != 0 and re.search(why, found.output), found)


def ibutils_says(guest, program, options='', check=True):
    """What ibdiagnet or ibdiagpath prints. They wait for an answer for so long, and cannot be told to wait longer, as the others
    can: where that was not enough, because the machine is busy, they are asked again."""
    for _ in range(10):
        output = guest.run(f'mkdir -p /tmp/ibutils && exec {program} -p 1 -o /tmp/ibutils {options}', 120, check=False)
        if '-E- failed to get' not in output.output:
            break
    expect(f'{program} {options} ends well', not check or output.status == 0, output.output)
    return output.output


def ibutils(guest, program, options=''):
    """ibdiagnet or ibdiagpath finds nothing wrong; gives what it printed. Groups are made for 10 Gb/s, and no card has less."""
    output = ibutils_says(guest, program, options)
    wrong = [line for line in output.splitlines() if re.match('-[EW]-', line) and not re.search('Topology file|Suboptimal', line)]
    expect(f'{program} {options} finds nothing', not wrong, output)
    return output


def lines(guest, program, arguments=''):
    """What it printed but comments, in an order that does not depend on where it began to look."""
    return sorted(line for line in run(guest, program, arguments).splitlines() if line and not line.startswith('#'))


def fields(output):
    """Of lines like "Lid:.............................2", by name."""
    return dict(re.findall(r'^(\w+):\.*(.*)$', output, re.MULTILINE))


def counters(guest, lid, options=''):
    """What perfquery reads of the port with this LID."""
    return {name: int(value, 0) for name, value in fields(run(guest, 'perfquery', f'{options} {lid} 1')).items()}


def records(guest, arguments):
    """saquery: the number of records, and what it printed of them. With a key that opensm trusts."""
    output = run(guest, 'saquery', f'--smkey 1 {arguments}')
    expect(f'saquery {arguments}', 'ERROR' not in output, output)
    return len(re.findall(r'^\S.* dump:$', output, re.MULTILINE)), output


@contextlib.contextmanager
def serving(guest, program, client, arguments):
    """A program serves inside (-S). It does when what it says to these arguments of a client has its guest's name: where nobody
    serves, the kernel answers, and some of the programs are content with that."""
    server = spawn(guest, program, '-S')
    wait.until(lambda: guest.name in result(client, program, arguments).output,
               lambda: f'served: {guest.name}$ {server.script}\n{server.output}')
    yield
    server.end()
