// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * start-kernel KERNEL INITRD COMMAND-LINE: end this kernel and go on with another,
 * without firmware in between (kexec).
 */
#include <fcntl.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int kernel, initrd;

    if (argc != 4) {
        fprintf(stderr, "usage: start-kernel KERNEL INITRD COMMAND-LINE\n");
        return 2;
    }
    kernel = open(argv[1], O_RDONLY | O_CLOEXEC);
    initrd = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (kernel < 0 || initrd < 0) {
        perror("open");
        return 1;
    }
    if (syscall(SYS_kexec_file_load, kernel, initrd, strlen(argv[3]) + 1,
                argv[3], 0)) {
        perror("kexec_file_load");
        return 1;
    }
    sync();
    syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
            LINUX_REBOOT_CMD_KEXEC, NULL);
    perror("reboot");
    return 1;
}
