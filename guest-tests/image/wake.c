/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: wake <INPUT   A guest that goes on from what was kept of another has that one's time and randomness. The input is the
 * time, "SECONDS.NANOSECONDS\n", and 64 random bytes in hexadecimal.
 */
#include <linux/random.h>
#include <stdio.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <time.h>

#define SEED 64

int main(void)
{
    struct {
        struct rand_pool_info info;
        unsigned char data[SEED];
    } pool = { .info = { .entropy_count = 8 * SEED, .buf_size = SEED } };
    struct timespec now;
    int random = open("/dev/random", O_RDWR);

    if (scanf("%ld.%ld", &now.tv_sec, &now.tv_nsec) != 2) {
        fputs("wake: no time\n", stderr);
        return 1;
    }
    for (int i = 0; i < SEED; i++) {
        if (scanf("%2hhx", &pool.data[i]) != 1) {
            fputs("wake: no randomness\n", stderr);
            return 1;
        }
    }
    if (clock_settime(CLOCK_REALTIME, &now) || ioctl(random, RNDADDENTROPY, &pool) || ioctl(random, RNDRESEEDCRNG)) {
        perror("wake");
        return 1;
    }
    return 0;
}
