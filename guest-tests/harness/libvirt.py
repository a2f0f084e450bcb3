# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that libvirt starts, by domains that are made of docs/libvirt: a libvirtd of a session, of who runs the tests, or of nobody
where that is root."""
import os
import pwd
import signal
import subprocess
import time
from xml.etree import ElementTree

from . import paths, wait
from .errors import GuestError
from .guest import Guest, die_with
from .patience import patient

EXAMPLES = os.path.join(paths.TOP, 'docs', 'libvirt')
QEMU = 'http://libvirt.org/schemas/domain/qemu/1.0'
SECONDS = 60  # for a command
USER = 'nobody'

ElementTree.register_namespace('qemu', QEMU)


class Session:
    """A libvirtd of nobody else's. folder: for all that it writes; its path is short, as there are sockets in it."""

    def __init__(self, folder):
        self.folder, self._process = folder, None
        self._environment = {**os.environ, 'HOME': self.folder, **{f'XDG_{name}': self.folder for name in
                             ('RUNTIME_DIR', 'CONFIG_HOME', 'CACHE_HOME', 'DATA_HOME', 'STATE_HOME')}}
        self._become = []
        if os.getuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._become = ['setpriv', f'--reuid={user.pw_uid}', f'--regid={user.pw_gid}', '--clear-groups', '--pdeathsig=KILL']

    def start(self):
        with open(os.path.join(self.folder, 'libvirtd.log'), 'w') as log:
            self._process = subprocess.Popen([*self._become, '/usr/sbin/libvirtd'], cwd=self.folder, env=self._environment,
                                             stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with(os.getpid()))
        wait.until(lambda: self.virsh('list', check=False).returncode == 0, 'answering: libvirtd', SECONDS)

    def spawn(self, command):
        """Another process of its user's."""
        return subprocess.Popen([*self._become, *command], cwd=self.folder, stdin=subprocess.DEVNULL, preexec_fn=die_with(os.getpid()))

    def virsh(self, *command, check=True):
        done = subprocess.run([*self._become, 'virsh', '-q', '-c', 'qemu:///session', *command], cwd=self.folder, env=self._environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patient(SECONDS), check=False)
        if check and done.returncode != 0:
            with open(os.path.join(self.folder, 'libvirtd.log')) as log:
                raise GuestError(f'virsh {" ".join(command)}: {done.stderr}\n{log.read()[-2000:]}')
        return done

    def stop(self):
        if not self._process:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(patient(20))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Domain(Guest):
    """A guest that libvirt has. example: of docs/libvirt; replaced: what stands there, and what is to stand there for this one, with
    {folder} for the session's. There is an Ethernet between the first two, too, for what programs say to each other first."""

    def __init__(self, session, number, example, replaced, layers=()):
        super().__init__(f'guest{number}', session.folder, number, memory=768, layers=layers)
        self._session, self._example, self._replaced = session, example, replaced

    def start(self):
        path = os.path.join(self.folder, f'{self.name}.xml')
        self._domain().write(path)
        os.chmod(path, 0o644)
        valid = subprocess.run(['virt-xml-validate', path, 'domain'], capture_output=True, text=True, check=False)
        if valid.returncode != 0:
            raise GuestError(f'{self._example}: {valid.stdout}{valid.stderr}')
        self._started = time.monotonic()
        self._session.virsh('define', path)
        self._session.virsh('start', self.name)
        self._come()
        return self

    def wait_ready(self, timeout=120):
        wait.until(self._ready.is_set, lambda: f'up: {self.name}: {self.kernel_log()[-2000:]}', timeout)
        return self

    def stop(self):
        self._session.virsh('destroy', self.name, check=False)
        self._session.virsh('undefine', self.name, check=False)
        if self._agent:
            self._agent.close()

    def trouble(self):
        return []

    def _domain(self):
        """The example, with this machine's own values, a kernel, and disks as all guests have."""
        with open(os.path.join(EXAMPLES, self._example)) as file:
            text = file.read()
        for old, new in self._replaced.items():
            if old not in text:
                raise GuestError(f'{self._example} has no {old}')
            text = text.replace(old, new.format(folder=self.folder))
        tree = ElementTree.ElementTree(ElementTree.fromstring(text))
        domain = tree.getroot()
        domain.find('name').text = self.name
        domain.find('memory').text = str(self.memory)
        boots = domain.find('os')
        for name, value in (('kernel', paths.KERNEL), ('initrd', paths.INITRAMFS), ('cmdline', self.kernel_line())):
            ElementTree.SubElement(boots, name).text = value
        devices = domain.find('devices')
        devices.find('emulator').text = paths.QEMU
        ElementTree.SubElement(devices.find('interface'), 'rom', enabled='no')  # the firmware of Debian's ipxe-qemu need not be here
        for kind in ('disk', 'console'):
            devices.remove(devices.find(kind))
        for number, path in enumerate(self._root()):
            disk = ElementTree.SubElement(devices, 'disk', type='file', device='disk')
            ElementTree.SubElement(disk, 'driver', name='qemu', type='raw')
            ElementTree.SubElement(disk, 'source', file=path)
            ElementTree.SubElement(disk, 'target', dev=f'vd{chr(ord("a") + number)}', bus='virtio')
            ElementTree.SubElement(disk, 'readonly')
        serial = ElementTree.SubElement(devices, 'serial', type='file')
        ElementTree.SubElement(serial, 'source', path=self.console)
        channel = ElementTree.SubElement(devices, 'channel', type='unix')
        ElementTree.SubElement(channel, 'source', mode='bind', path=os.path.join(self.folder, f'{self.name}.agent'))
        ElementTree.SubElement(channel, 'target', type='virtio', name='rdma-hca.agent')
        commands = domain.find(f'{{{QEMU}}}commandline')
        ethernet = f'stream,id=net,addr.type=unix,addr.path={self.folder}/net,server={"on" if self.number == 1 else "off,reconnect-ms=100"}'
        for value in ('-L', paths.QEMU_DATA, '-netdev', ethernet, '-device', f'virtio-net-pci,netdev=net,romfile=,mac={self._mac()},addr=0x11'):
            ElementTree.SubElement(commands, f'{{{QEMU}}}arg', value=value)
        return tree

    def _mac(self):
        return f'52:54:00:77:00:0{self.number}'

    def set_address(self, mac=None):
        """An interface, that between the guests if not said, has 10.1.0.N."""
        self.run(f'name=$(grep -l {mac or self._mac()} /sys/class/net/*/address | cut -d / -f 5) && '
                 f'ip address replace 10.1.0.{self.number}/24 dev $name && ip link set $name up')

    def _connect(self, kind):
        return self.connect(f'{self.name}.{kind}', self, lambda: self._session.virsh('domstate', self.name).stdout)

    # in place of a process
    args = ()

    def poll(self):
        return None if 'running' in self._session.virsh('domstate', self.name, check=False).stdout else 1
