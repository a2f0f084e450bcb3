/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: file-lock flock|fcntl hold|try FILE [START LENGTH]   Lock a file for writing, with fcntl a part of it. hold: wait for
 * the lock, say "locked" and keep it until killed. try: say "locked", or "refused" if somebody else has it.
 */
#include "common.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct flock part = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool hold;
    int file, error;

    check(argc == 4 || argc == 6);
    hold = strcmp(argv[2], "hold") == 0;
    file = open(argv[3], O_RDWR);
    check(file >= 0);
    if (argc == 6) {
        part.l_start = atol(argv[4]);
        part.l_len = atol(argv[5]);
    }
    if (strcmp(argv[1], "flock") == 0) {
        error = flock(file, hold ? LOCK_EX : LOCK_EX | LOCK_NB);
    } else {
        error = fcntl(file, hold ? F_SETLKW : F_SETLK, &part);
    }
    check(error == 0 || (!hold && (errno == EAGAIN || errno == EACCES)));
    printf("%s\n", error ? "refused" : "locked");
    fflush(stdout);
    if (hold) {
        pause();
    }
    return 0;
}
