# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of the tree that are changed for a time."""
import contextlib
import sys


@contextlib.contextmanager
def changed(path, old, new):
    """Has new in a file where it has old, once; puts it back in the end."""
    text = path.read_text()
    if text.count(old) != 1:
        sys.exit(f'{path}: has {text.count(old)} times what is to be changed: {old}')
    path.write_text(text.replace(old, new))
    try:
        yield
    finally:
        path.write_text(text)
