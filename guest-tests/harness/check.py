# SPDX-License-Identifier: GPL-2.0-or-later
"""What a test demands of what it has seen."""
from .guest import GuestError


def expect(what, good, *seen):
    """what: the words for it. seen: what tells why it is not."""
    if not good:
        raise GuestError(f'{what}: ' + '\n'.join(str(each) for each in seen))


def expect_error(words, function, *arguments):
    """That function(*arguments) raises a GuestError that has the words in it."""
    try:
        function(*arguments)
    except GuestError as error:
        expect(words, words in str(error), error)
        return
    raise GuestError(f'no error: {words}')
