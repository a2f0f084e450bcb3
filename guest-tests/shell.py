#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make shell` does: two guests and their consoles, side by side in tmux, else one at a time in this terminal.

In the environment: LINK=roce: on an Ethernet segment, not on a cable; LINK=managed: on a cable, without LIDs before a subnet
manager runs. APPS=1: with fio, NFS, iSCSI, MPI and opensm, and what they need; LINK=managed has them always. GDB=1: below the
consoles gdb is at guest1's kernel, which stands still until told to go on.

shell.py SOCKET... attaches to consoles by their sockets; it is what runs in each half of tmux.
"""
import os
import select
import shlex
import shutil
import socket
import subprocess
import sys
import termios
import tty

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True

from harness.debugger import Debugger  # noqa: E402
from harness.guest import GuestError  # noqa: E402
from harness.labs import APPLICATIONS, infiniband, roce, unmanaged  # noqa: E402

ESCAPE = b'\x1d'  # Ctrl-]
LABS = {'': infiniband, 'ib': infiniband, 'roce': roce, 'managed': unmanaged}


def connect(path):
    # Through /proc, as the path may be too long for a socket address.
    folder = os.open(os.path.dirname(path), os.O_PATH)
    console = socket.socket(socket.AF_UNIX)
    console.connect(f'/proc/self/fd/{folder}/{os.path.basename(path)}')
    os.close(folder)
    return console


def attach(paths):
    """Connect this terminal to the first console; Ctrl-] goes to the next one, and after the last ends."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        for path in paths:
            console = connect(path)
            name = os.path.basename(path).rsplit('.', 1)[0]
            after = 'the next console' if path != paths[-1] else 'the end'
            os.write(1, f'\r\n[{name}: Ctrl-] for {after}]\r\n'.encode())
            console.sendall(b'\n')
            talk(console)
            console.close()
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def talk(console):
    while True:
        ready, _, _ = select.select([0, console], [], [])
        if console in ready:
            data = console.recv(4096)
            if not data:
                return
            os.write(1, data)
        if 0 in ready:
            data = os.read(0, 1024)
            if not data or ESCAPE in data:
                return
            console.sendall(data)


def main():
    if len(sys.argv) > 1:
        attach(sys.argv[1:])
        return
    if not sys.stdin.isatty():
        sys.exit('rdma-hca: make shell needs a terminal')
    make = LABS.get(os.environ.get('LINK', ''))
    if not make:
        sys.exit(f'rdma-hca: LINK must be one of {", ".join(filter(None, LABS))}')
    options = APPLICATIONS if os.environ.get('APPS') else {}
    lab = make(append='guest.console=1', boots=True, **options)
    debugger = Debugger(lab.a) if os.environ.get('GDB') else None
    with lab:
        consoles = [os.path.join(lab.folder, f'{guest.name}.tty') for guest in lab.guests]
        if shutil.which('tmux'):
            command = [[sys.executable, os.path.realpath(__file__), console] for console in consoles]
            tmux = ['tmux', '-L', f'rdma-hca-{os.getpid()}', '-f', '/dev/null']
            environment = {name: value for name, value in os.environ.items() if name != 'TMUX'}
            gdb = ['split-window', '-v', '-f', '-c', lab.folder, *debugger.command(), ';'] if debugger else []
            subprocess.run(tmux + ['new-session', *command[0], ';', 'set', '-g', 'mouse', 'on', ';',
                                   'split-window', '-h', *command[1], ';', *gdb], check=False, env=environment)
            subprocess.run(tmux + ['kill-server'], check=False, env=environment, stderr=subprocess.DEVNULL)
        else:
            print('There is no tmux here, so the consoles come one after another.')
            if debugger:
                print(f'In another terminal: cd {lab.folder} && {shlex.join(debugger.command())}')
            attach(consoles)


try:
    main()
except (GuestError, OSError) as error:
    sys.exit(f'rdma-hca: {error}')
