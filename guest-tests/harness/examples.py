# SPDX-License-Identifier: GPL-2.0-or-later
"""Examples in documents, run as they stand. `...` in a command stands for what any machine needs: kernel, memory and so on."""
import collections
import os
import re
import shlex
import textwrap

from . import paths
from .devices import InfinibandCard, RoceCard
from .guest import GuestError
from .lab import Machine
from .links import free_port

# QEMU's documents have a name of their own for the program.
QEMU = '$RDMA_HCA_QEMU -L $RDMA_HCA_QEMU_DATA'
ENVIRONMENT = 'eval "$(make -s env)"\n'


class Document:
    """A text in Markdown or reStructuredText, in both of which examples are indented."""

    def __init__(self, path):
        self.path = path
        with open(os.path.join(paths.TOP, path)) as file:
            self.text = file.read()
        blocks = re.findall(r'(?:^ +\S.*\n)+', self.text, re.M)
        self.paragraphs = [textwrap.dedent(block).rstrip() for block in blocks]

    def examples(self, *words):
        """The paragraphs of examples that have all these words."""
        found = [text for text in self.paragraphs if all(word in text for word in words)]
        if not found:
            raise GuestError(f'{self.path} has no example with {words}')
        return found

    def example(self, *words):
        """The only one."""
        found = self.examples(*words)
        if len(found) != 1:
            raise GuestError(f'{self.path} has {len(found)} examples with {words}')
        return found[0]

    def inline(self, pattern):
        """What a regular expression finds in the text between backquotes."""
        found = re.search(rf'`({pattern})`', self.text)
        if not found:
            raise GuestError(f'{self.path} does not say `{pattern}`')
        return found[1]


def apart(*examples):
    """Examples that belong together, with sockets of their own: others may try the same ones in this moment. Files are in the
    lab's folder, ports are free ones."""
    ports = collections.defaultdict(free_port)
    return [re.sub(r'\b747\d\b', lambda port: str(ports[port[0]]), text.replace('/tmp/', '')) for text in examples]


def shell(text):
    """An example as a script for bash, in any folder; what `...` stands for are the arguments."""
    text = re.sub(r'^\$ ', '', text, flags=re.M)
    text = text.replace('|qemu_system|', QEMU).replace('\\\\\n', '\\\n')
    text = re.sub(r'(?<=\s)\.\.\.(?=\s|$)', '"$@"', text)
    text = text.replace(QEMU, f'exec {QEMU}')  # whom Guest stops is QEMU
    return f'unset MAKEFLAGS MAKELEVEL; make() {{ command make -C {shlex.quote(paths.TOP)} "$@"; }}\n{text}\n'


def machine(text, *devices, **options):
    """A machine that an example starts. devices: those that `...` stands for, and the example's card; options: a Guest's."""
    script = shell(text if 'make -s env' in text else ENVIRONMENT + text)
    return Machine(*devices, launch=['bash', '-e', '-c', script, 'example'], boots=False, **options)


class ExampleCard(InfinibandCard):
    """The card that is in the example itself."""

    def arguments(self):
        return []


class ExampleRoceCard(RoceCard):
    """The card that is in the example itself."""

    @property
    def mac(self):
        return f'52:54:00:00:01:{self.guest.number:02x}'

    def arguments(self):
        return []
