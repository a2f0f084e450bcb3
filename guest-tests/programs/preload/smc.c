/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What smc_run of smc-tools does: a program that wants TCP gets SMC (LD_PRELOAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

/* Protocols of AF_SMC, as linux/smc has them in the kernel. */
#define SMC_IPV4 0
#define SMC_IPV6 1

typedef int socket_function(int domain, int type, int protocol);

int socket(int domain, int type, int protocol)
{
    static socket_function *next;
    int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (!next) {
        next = (socket_function *)dlsym(RTLD_NEXT, "socket");
    }
    if (kind == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP) && (domain == AF_INET || domain == AF_INET6)) {
        protocol = domain == AF_INET ? SMC_IPV4 : SMC_IPV6;
        domain = AF_SMC;
    }
    return next(domain, type, protocol);
}
