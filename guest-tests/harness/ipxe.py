# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that boots over InfiniBand: iPXE with its own driver for an InfiniHost III Lx (arbel) fetches Linux from a web server that
is in another guest, by IPoIB, and starts it."""
import glob
import os

from . import fabric, links, mthca, paths
from .guest import Guest
from .lab import Machine

FIRMWARE = os.path.join(paths.GUEST, 'ipxe.lkrn')
FOLDER = '/tmp/www'  # of the server
# By its chip, as the other interface has a driver there, too. What is not up as yet is tried again.
SCRIPT = """#!ipxe
iseq ${{net0/chip}} mt25204 && set card net0 || set card net1
set ${{card}}/ip {address}
set ${{card}}/netmask 255.255.255.0
:open
ifopen ${{card}} || goto open
:fetch
imgfree
kernel http://{server}/kernel {line} || goto fetch
initrd http://{server}/initrd || goto fetch
ifstat ${{card}}
boot
"""


def kernel():
    """As firmware boots it."""
    return glob.glob(os.path.join(paths.BOOT, 'vmlinuz-*'))[0]


class NetBooted(Guest):
    """Once Linux is up in it, it is a guest like others. Its firmware's screen is in its console's log."""
    server = None  # that a lab has

    def _boots(self):
        script = os.path.join(self.folder, f'{self.name}.ipxe')
        with open(script, 'w', encoding='ascii') as file:
            file.write(SCRIPT.format(address=self.card.address(), server=self.server.card.address(), line=self.kernel_line()))
        return ['-kernel', FIRMWARE, '-initrd', script, '-machine', 'graphics=off']

    def wait_ready(self, timeout=240):
        return super().wait_ready(timeout)


class NetBootedMachine(Machine):
    def _guest(self, *arguments, **options):
        return NetBooted(*arguments, **options)


class NetBootLab(fabric.FabricLab):
    """Its first guest has the subnet manager and the web server; the second one is started when these are there."""

    def __init__(self):
        card = mthca.ManagedMthcaCard('cable')
        super().__init__([mthca.machine(card, ('apps',), disks=[kernel(), paths.INITRAMFS], boots=True),
                          mthca.machine(card, kind=NetBootedMachine, boots=True)],
                         {'net': links.stream(), 'cable': links.unix_cable()})
        self.b.server = self.a

    def start(self):
        for link in self.links.values():
            link.start(self.folder)
        self.a.start().wait_ready()
        for device in self.a.devices:
            device.configure()
        self._serve()
        # Firmware leaves the port to Linux, which begins anew with it.
        with self.manage(self.a, fabric.NO_PORT).expecting(*fabric.ANEW):
            self.b.start()
            self.wait_again(self.b)
        return self

    def _serve(self):
        """What its disks are, to their sizes."""
        for number, (name, file) in enumerate((('kernel', kernel()), ('initrd', paths.INITRAMFS))):
            self.a.run(f'mkdir -p {FOLDER} && head -c {os.path.getsize(file)} {self.a.disk(number)} >{FOLDER}/{name}')
        self.a.run(f'busybox httpd -h {FOLDER}')
