/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's end of the harness: runs shell scripts that arrive on a virtio-serial port, many at a time.
 *
 *   from the host:  "run ID LENGTH\n" and LENGTH bytes of script;  "kill ID SIGNAL\n"
 *   to the host:    "ready\n" once;  "out ID LENGTH\n" and LENGTH bytes of output;  "exit ID STATUS\n", where
 *                   STATUS is as a shell has it: 128 + signal number for a script that was killed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define MAX_JOBS 64
#define MAX_SCRIPT (1 << 20)

struct job {
    long id;
    pid_t pid; /* 0: this entry is free */
    int out;   /* -1: its output has ended */
};

static struct job jobs[MAX_JOBS];
static int port;

static void put(const void *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(port, data, len);

        if (n > 0) {
            data = (const char *)data + n;
            len -= n;
        } else {
            usleep(10000); /* the host is slow, or not there */
        }
    }
}

static void get(void *data, size_t len)
{
    while (len > 0) {
        ssize_t n = read(port, data, len);

        if (n > 0) {
            data = (char *)data + n;
            len -= n;
        } else {
            usleep(10000);
        }
    }
}

/*
 * Where a script's output goes: a terminal, so that programs write it line by line and the host sees it when it happens,
 * but one that leaves the bytes alone. fds[0] is our end.
 */
static int open_terminal(int fds[2])
{
    struct termios raw;

    fds[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fds[0] < 0) {
        return -1;
    }
    if (grantpt(fds[0]) || unlockpt(fds[0]) || (fds[1] = open(ptsname(fds[0]), O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
        close(fds[0]);
        return -1;
    }
    tcgetattr(fds[1], &raw);
    cfmakeraw(&raw);
    tcsetattr(fds[1], TCSANOW, &raw);
    return 0;
}

static void start(long id, char *script)
{
    struct job *job = jobs;
    int fds[2];

    while (job < jobs + MAX_JOBS && job->pid) {
        job++;
    }
    if (job == jobs + MAX_JOBS || open_terminal(fds)) {
        dprintf(port, "exit %ld 255\n", id);
        return;
    }
    job->id = id;
    job->out = fds[0];
    job->pid = fork();
    if (job->pid == 0) {
        setsid();
        dup2(open("/dev/null", O_RDONLY), 0);
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        execl("/bin/sh", "sh", "-c", script, NULL);
        _exit(127);
    }
    close(fds[1]);
    if (job->pid < 0) {
        close(fds[0]);
        job->pid = 0;
        dprintf(port, "exit %ld 255\n", id);
    }
}

static void command(void)
{
    char line[80];
    size_t n = 0;
    long id, arg;

    do {
        get(&line[n], 1);
    } while (line[n] != '\n' && ++n < sizeof(line) - 1);
    line[n] = 0;

    if (sscanf(line, "run %ld %ld", &id, &arg) == 2 && arg >= 0 && arg < MAX_SCRIPT) {
        char *script = calloc(1, arg + 1);

        get(script, arg);
        start(id, script);
        free(script);
    } else if (sscanf(line, "kill %ld %ld", &id, &arg) == 2) {
        for (struct job *job = jobs; job < jobs + MAX_JOBS; job++) {
            if (job->pid && job->id == id) {
                kill(-job->pid, arg);
            }
        }
    }
}

static void output(struct job *job)
{
    char data[16384];
    ssize_t n = read(job->out, data, sizeof(data));

    if (n > 0) {
        dprintf(port, "out %ld %zd\n", job->id, n);
        put(data, n);
    } else if (n == 0 || errno != EINTR) { /* EIO: nobody has the terminal open any more */
        int status;

        close(job->out);
        job->out = -1;
        waitpid(job->pid, &status, 0);
        job->pid = 0;
        dprintf(port, "exit %ld %d\n", job->id,
                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
}

int main(int argc, char **argv)
{
    if (argc != 2 || (port = open(argv[1], O_RDWR | O_CLOEXEC)) < 0) {
        perror("agent");
        return 1;
    }
    put("ready\n", 6);
    for (;;) {
        struct pollfd fds[MAX_JOBS + 1] = { { .fd = port, .events = POLLIN } };

        for (int i = 0; i < MAX_JOBS; i++) {
            fds[i + 1].fd = jobs[i].pid ? jobs[i].out : -1;
            fds[i + 1].events = POLLIN;
        }
        if (poll(fds, MAX_JOBS + 1, -1) < 0) {
            continue;
        }
        for (int i = 0; i < MAX_JOBS; i++) {
            if (fds[i + 1].revents) {
                output(&jobs[i]);
            }
        }
        if (fds[0].revents & POLLHUP) {
            usleep(100000); /* nobody at the other end */
        } else if (fds[0].revents & POLLIN) {
            command();
        }
    }
}
