/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: frame-room   Say "ready", let all ICMP packets that come until SIGUSR1 wait in a socket's queue, and say how many they
 * are and how many bytes of memory the kernel charges the socket for each.
 */
#include "common.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#define ROOM (16 << 20) /* for all of them */

static uint32_t charged(int fd)
{
    uint32_t info[SK_MEMINFO_VARS];
    socklen_t len = sizeof(info);

    check(!getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len));
    check(len > SK_MEMINFO_DROPS * sizeof(info[0]) && !info[SK_MEMINFO_DROPS]);
    return info[SK_MEMINFO_RMEM_ALLOC];
}

int main(void)
{
    int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), room = ROOM;
    unsigned int bytes, n = 0;
    char byte;

    check(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)));
    await_start("ready");
    bytes = charged(fd);
    while (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0) {
        n++;
    }
    check(n && !charged(fd));
    printf("%u packets of %u bytes\n", n, bytes / n);
    return 0;
}
