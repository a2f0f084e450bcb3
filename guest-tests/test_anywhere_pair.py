#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ci/rdma-hca-pair, as jobs of a CI use it: see docs/ci.md."""
import glob
import json
import os
import re
import subprocess
import tempfile

from harness import captures, paths, tap
from harness.guest import GuestError
from harness.patience import patient

CI = os.path.join(paths.TOP, 'ci')
PROGRAM = os.path.join(CI, 'rdma-hca-pair')
NOBODY = 65534
# In place of a container engine: has an image, and runs what is in it here.
ENGINE = f"""#!/bin/sh
[ "$1" = image ] && exit
while [ "${{1#rdma-hca:}}" = "$1" ]; do shift; done
shift
exec {PROGRAM} "$@"
"""


def pair(*arguments, status=0, seconds=200):
    """Run it; gives what each guest has printed, by name, and what it said itself by ''."""
    return printed([PROGRAM, *arguments], status, seconds)


def printed(command, status=0, seconds=200, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          timeout=patient(seconds), check=False, **options)
    if done.returncode != status:
        raise GuestError(f'status {done.returncode}, not {status}: {done.stdout}')
    said = {}
    for line in done.stdout.splitlines():
        name, colon, rest = line.partition(': ')
        guest = name if colon and name.startswith('guest') else ''
        said.setdefault(guest, []).append(rest if guest else line)
    return said


def expect(what, found, wanted):
    if found != wanted:
        raise GuestError(f'{what}: {found}, not {wanted}')


def test_every_guest():
    """Runs the command, knows who it is, and waits for the others where it says so."""
    said = pair('cd /tmp && echo $RDMA_HCA_ROLE $RDMA_HCA_NUMBER $RDMA_HCA_PEER $(ls /sys/class/infiniband) $RDMA_HCA_DEVICE;'
                'for round in 1 2 3; do rdma-hca-barrier at-$round || exit; done; ping -q -c 1 $RDMA_HCA_PEER >/dev/null')
    expect('guests', said, {'guest1': ['server 1 10.0.0.2 rdma_hca0 rdma_hca0'], 'guest2': ['client 2 10.0.0.1 rdma_hca0 rdma_hca0']})


def test_server_and_client():
    """The client begins when the server listens. Files go in and come out; the status is the client's; the packets are kept."""
    with tempfile.TemporaryDirectory(dir=paths.RUN) as folder:
        given, found = (os.path.join(folder, name) for name in ('given', 'found'))
        os.makedirs(os.path.join(given, 'below'))
        with open(os.path.join(given, 'below', 'text'), 'w') as file:
            file.write('of the host\n')
        bandwidth = 'ib_write_bw -d $RDMA_HCA_DEVICE -x $RDMA_HCA_GID_INDEX -n 50 -s 4096'
        said = pair('--link', 'roce', '--copy-in', f'{given}:there', '--copy-out', 'result', '--artifacts', found, '--capture',
                    '--server', f'{bandwidth} && tr a-z A-Z <there/below/text >result && rdma-hca-barrier made',
                    '--client', f'{bandwidth} $RDMA_HCA_SERVER && rdma-hca-barrier made && exit 7', status=7)
        if not any(line.split()[:2] == ['4096', '50'] for line in said['guest2']):
            raise GuestError(said)
        with open(os.path.join(found, 'guest1', 'result')) as file:
            expect('what the server made', file.read(), 'OF THE HOST\n')
        expect('of the client', os.path.exists(os.path.join(found, 'guest2')), False)
        captures.check(os.path.join(found, 'guest1-hca0.pcapng'))
        for name in ('guest1.console', 'end-guest2-hca0.counters', 'end-guest1-hca0.recorder', 'end-guest1.rdma'):
            expect(name, os.path.getsize(os.path.join(found, name)) > 0, True)


def test_client_that_fails():
    """The server, which would wait for ever, is ended."""
    said = pair('--server', 'trap "echo told; exit 9" TERM; nc -l -p 77 >/tmp/got & while sleep 0.1; do :; done', '--client', 'exit 5', status=5)
    expect('the server', 'told' in said['guest1'], True)


def test_server_that_stays():
    said = pair('--server-stays', '--server', 'trap "echo told; exit 9" TERM; nc -l -p 77 >/tmp/got & while sleep 0.1; do :; done',
                '--client', 'echo something | nc $RDMA_HCA_SERVER 77')
    expect('the server', said['guest1'].count('told'), 1)


def test_server_that_fails():
    """Its status counts, and no client begins."""
    expect('said', pair('--server', 'echo no; exit 5', '--client', 'echo began', status=5), {'guest1': ['no']})


def test_time_is_over():
    said = pair('--timeout', '2', 'echo begun; sleep 1000', status=124)
    expect('said', said['guest1'] + said['guest2'], ['begun', 'begun'])


def test_three_on_a_switch():
    said = pair('--link', 'managed', '--guests', '3',
                'ibswitches | wc -l; ibhosts | wc -l; rdma-hca-barrier up && for a in $RDMA_HCA_ADDRESSES; do ping -q -c 1 $a >/dev/null || exit; done')
    expect('said', said, {f'guest{number}': ['1', '3'] for number in (1, 2, 3)})


def test_does_not_begin():
    for arguments in (['--copy-in', '/nonesuch', 'true'], ['--packages', 'no-such-package', 'true']):
        if not any(arguments[1] in line for line in pair(*arguments, status=125)['']):
            raise GuestError(f'does not say what is missing: {arguments}')


def test_another_user():
    """Who has no right to write where the tree was built, and none else, has guests, and packages for them, too."""
    with tempfile.TemporaryDirectory(dir=tempfile.gettempdir()) as folder:
        environment = {'PATH': os.environ['PATH'], 'RDMA_HCA_CACHE': folder}
        options = {}
        if os.getuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            options = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}
        said = printed([PROGRAM, '--packages', 'hello', 'id -u; hello'], env=environment, cwd='/', **options)
    expect('said', said, {'guest1': ['0', 'Hello, world!'], 'guest2': ['0', 'Hello, world!']})


def test_inputs_of_a_step():
    """As ci/action.yml gives them to a container's."""
    with tempfile.TemporaryDirectory(dir=paths.RUN) as folder:
        engine, given, found = (os.path.join(folder, name) for name in ('engine', 'given', 'found'))
        for path, text in ((engine, ENGINE), (given, 'something\n')):
            with open(path, 'w') as file:
                file.write(text)
        os.chmod(engine, 0o755)
        inputs = dict.fromkeys(inputs_of_action(), '')
        inputs.update({'run': 'cat given other; echo $RDMA_HCA_LINK >made; exit 3', 'link': 'roce', 'copy-in': f'{given}\n{given}:other\n',
                       'copy-out': 'made', 'artifacts': found, 'capture': 'false'})
        environment = {**os.environ, 'CONTAINER_ENGINE': engine, 'RDMA_HCA_CACHE': os.path.join(folder, 'cache'), 'INPUTS': json.dumps(inputs)}
        said = printed([os.path.join(CI, 'run-inputs')], status=3, env=environment)
        expect('said', said, {name: ['something'] * 2 for name in ('guest1', 'guest2')})
        with open(os.path.join(found, 'guest2', 'made')) as file:
            expect('what came out', file.read(), 'roce\n')
        expect('captures', glob.glob(os.path.join(found, 'guest?-*.pcapng')), [])


def inputs_of_action():
    with open(os.path.join(CI, 'action.yml')) as file:
        inputs = file.read().partition('\ninputs:\n')[2].partition('\nruns:')[0]
    return re.findall(r'^  ([\w-]+):$', inputs, re.MULTILINE)


def test_action_has_all_options():
    options = re.findall(r'^  --([\w-]+)', subprocess.run([PROGRAM, '--help'], stdout=subprocess.PIPE, text=True, check=True).stdout, re.MULTILINE)
    # The container has no gdb, and no driver with symbols.
    expect('inputs', sorted([*inputs_of_action(), 'gdb']), sorted([*options, 'run']))


if __name__ == '__main__':
    os.makedirs(paths.RUN, exist_ok=True)
    tap.main()
