# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock of emulated machines. Their time-stamp counter goes as the host's does. Linux finds its frequency out by comparing it with
timers while it boots: where the host is busy, an emulator that had to wait in between made it wrong by a factor of up to 30, and the
machine's time with it: sleeps, time-outs, quotas and what programs measure. So its kernel is told."""
import ctypes
import functools
import mmap
import platform
import time

SECONDS = 0.1
TRIES = 20
# rdtsc; shl $32, %rdx; or %rdx, %rax; ret
RDTSC = bytes.fromhex('0f31 48c1e220 4809d0 c3')


def _pair(counter):
    """Nanoseconds and what the counter had then: of some tries the one that was disturbed least."""
    def once():
        before = time.monotonic_ns()
        count = counter()
        after = time.monotonic_ns()
        return after - before, (before + after) // 2, count

    return min(once() for _ in range(TRIES))[1:]


@functools.cache
def host_khz():
    """The frequency of the host's counter, None: it has none that is known here, or programs cannot be made."""
    if platform.machine() != 'x86_64':
        return None
    try:
        with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
            page.write(RDTSC)
            there = ctypes.c_char.from_buffer(page)
            counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(there))
            (begin, first), _, (end, last) = _pair(counter), time.sleep(SECONDS), _pair(counter)
            del counter, there
    except OSError:
        return None
    return (last - first) * 1000000 // (end - begin)


def options():
    """What an emulated machine's kernel is told of its clock. Nor is its watchdog of clocks to doubt it: then each look at the clock
    would be a system call, and one at a port."""
    khz = host_khz()
    return f'tsc=reliable tsc_early_khz={khz}' if khz else 'tsc=reliable'
