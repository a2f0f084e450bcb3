/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * usage: fail-nth OPERATION [ARGUMENT...]   Do it again and again, while in the kernel first the first allocation (or copy from
 * or to user space) of this thread fails, then the second, and so on until none is left that could. After each (each 16th, if
 * the card starts anew) the operation has to do without failures. The kernel has CONFIG_FAULT_INJECTION.
 *
 *   bind DEVICE        the driver is bound to a PCI device, which it is not yet
 *   unbind DEVICE      it is unbound, and bound again without failures
 *   reset DEVICE       the function is reset while the driver is bound
 *   up INTERFACE, mtu INTERFACE MTU    the interface is brought up; gets another MTU, and back its own
 *   read FILE
 *   open, pd, cq, resize, srq, srq-resize, xrcd, mr, mw, dm, dm-mr, rereg, qp, flow, connect    verbs
 *   exit               a process that has made all that ends with failures
 */
#include "common.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FAILURES 100000
#define EACH_OF 400
#define MAX_EXIT 150 /* of a process that ends nobody knows how far it came */
#define REGION_SIZE (4u << 20)

/* --- failures ----------------------------------------------------------------------------------------------------- */

static int fail_nth;

static void open_injector(void)
{
    fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
    check(fail_nth >= 0);
}

static void arm(int n)
{
    char text[16];
    int length = snprintf(text, sizeof(text), "%d", n);

    check(pwrite(fail_nth, text, length, 0) == length);
}

/* Whether a failure came. Reading and writing the file may fail by what is still armed; then none had come. */
static bool disarm(void)
{
    char text[16] = "";
    int its_errno = errno;
    bool came = pread(fail_nth, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;

    if (!came) {
        (void)!pwrite(fail_nth, "0", 1, 0);
    }
    errno = its_errno;
    return came;
}

/* --- a device that is bound, an interface, a file ----------------------------------------------------------------- */

static const char *device, *interface;
static int bind_file, unbind_file, reset_file, read_file, socket_file;
static int its_mtu, other_mtu;

static int open_file(const char *folder, const char *name, int flags)
{
    char path[256];
    int file;

    check(snprintf(path, sizeof(path), "%s%s", folder, name) < (int)sizeof(path));
    file = open(path, flags);
    check(file >= 0);
    return file;
}

static bool write_device(int file)
{
    return write(file, device, strlen(device)) == (ssize_t)strlen(device);
}

static void prepare_bind(char **arguments)
{
    device = arguments[0];
    bind_file = open_file("/sys/bus/pci/drivers/rdma_hca/", "bind", O_WRONLY);
    unbind_file = open_file("/sys/bus/pci/drivers/rdma_hca/", "unbind", O_WRONLY);
}

static bool do_bind(void)
{
    return write_device(bind_file);
}

static bool do_unbind(void)
{
    return write_device(unbind_file);
}

static void prepare_reset(char **arguments)
{
    char folder[128];

    device = arguments[0];
    snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%s/", device);
    reset_file = open_file(folder, "reset", O_WRONLY);
}

static bool do_reset(void)
{
    return write(reset_file, "1", 1) == 1;
}

static struct ifreq request(void)
{
    struct ifreq ifr = { 0 };

    snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
    return ifr;
}

static bool set_up(bool up)
{
    struct ifreq ifr = request();

    if (ioctl(socket_file, SIOCGIFFLAGS, &ifr)) {
        return false;
    }
    ifr.ifr_flags = up ? ifr.ifr_flags | IFF_UP : ifr.ifr_flags & ~IFF_UP;
    return !ioctl(socket_file, SIOCSIFFLAGS, &ifr);
}

static void prepare_up(char **arguments)
{
    interface = arguments[0];
    socket_file = socket(AF_INET, SOCK_DGRAM, 0);
    check(socket_file >= 0 && set_up(false));
}

static bool do_up(void)
{
    return set_up(true);
}

static bool undo_up(void)
{
    return set_up(false);
}

static bool set_mtu(int mtu)
{
    struct ifreq ifr = request();

    ifr.ifr_mtu = mtu;
    return !ioctl(socket_file, SIOCSIFMTU, &ifr);
}

static void prepare_mtu(char **arguments)
{
    struct ifreq ifr;

    interface = arguments[0];
    socket_file = socket(AF_INET, SOCK_DGRAM, 0);
    ifr = request();
    check(socket_file >= 0 && !ioctl(socket_file, SIOCGIFMTU, &ifr));
    its_mtu = ifr.ifr_mtu;
    other_mtu = atoi(arguments[1]);
    check(its_mtu != other_mtu);
}

static bool do_mtu(void)
{
    return set_mtu(other_mtu);
}

static bool undo_mtu(void)
{
    return set_mtu(its_mtu);
}

static void prepare_read(char **arguments)
{
    read_file = open_file(arguments[0], "", O_RDONLY);
}

static bool do_read(void)
{
    static char buffer[4096];

    return pread(read_file, buffer, sizeof(buffer), 0) > 0;
}

static bool nothing(void)
{
    return true;
}

/* --- verbs -------------------------------------------------------------------------------------------------------- */

static struct ibv_device *found;
static struct ibv_context *context;
static struct device hca;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static struct ibv_dm *dm;
static struct ibv_qp *qp;
static struct ibv_xrcd *xrcd;
static struct ibv_flow *flow;
static void *memory;
static const int queue_entries = 256;
static bool larger;

static void find_device(char **arguments)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    (void)arguments;
    check(list && list[0]);
    found = list[0];
}

/* Those of the verbs that return an error do not set errno. */
static bool ok(int err)
{
    errno = err;
    return !err;
}

static bool do_open(void)
{
    return (context = ibv_open_device(found)) != NULL;
}

static bool undo_open(void)
{
    return !ibv_close_device(context);
}

static void prepare_verbs(char **arguments)
{
    (void)arguments;
    open_device(&hca);
    context = hca.context;
    memory = mmap(NULL, REGION_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    check(memory != MAP_FAILED);
}

static bool do_pd(void)
{
    return (pd = ibv_alloc_pd(context)) != NULL;
}

static bool undo_pd(void)
{
    return ok(ibv_dealloc_pd(pd));
}

static bool do_cq(void)
{
    return (cq = ibv_create_cq(context, queue_entries, NULL, NULL, 0)) != NULL;
}

static bool undo_cq(void)
{
    return ok(ibv_destroy_cq(cq));
}

static bool do_srq(void)
{
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = queue_entries, .max_sge = 1 } };

    return (srq = ibv_create_srq(hca.pd, &attr)) != NULL;
}

static bool undo_srq(void)
{
    return ok(ibv_destroy_srq(srq));
}

static bool do_xrcd(void)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
        .fd = -1,
        .oflags = O_CREAT,
    };

    return (xrcd = ibv_open_xrcd(hca.context, &attr)) != NULL;
}

static bool undo_xrcd(void)
{
    return ok(ibv_close_xrcd(xrcd));
}

static bool do_mr(void)
{
    return (mr = ibv_reg_mr(hca.pd, memory, REGION_SIZE, ACCESS_ALL)) != NULL;
}

static bool undo_mr(void)
{
    return ok(ibv_dereg_mr(mr));
}

static bool do_mw(void)
{
    return (mw = ibv_alloc_mw(hca.pd, IBV_MW_TYPE_2)) != NULL;
}

static bool undo_mw(void)
{
    return ok(ibv_dealloc_mw(mw));
}

static bool do_dm(void)
{
    struct ibv_alloc_dm_attr attr = { .length = 10000 };

    return (dm = ibv_alloc_dm(context, &attr)) != NULL;
}

static bool undo_dm(void)
{
    return ok(ibv_free_dm(dm));
}

static void prepare_dm_mr(char **arguments)
{
    prepare_verbs(arguments);
    check(do_dm());
}

static bool do_dm_mr(void)
{
    return (mr = ibv_reg_dm_mr(hca.pd, dm, 0, 10000, ACCESS_ALL | IBV_ACCESS_ZERO_BASED)) != NULL;
}

static bool do_qp(void)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = { .max_send_wr = queue_entries, .max_recv_wr = queue_entries, .max_send_sge = 4, .max_recv_sge = 4 },
        .qp_type = IBV_QPT_RC,
    };

    return (qp = ibv_create_qp(hca.pd, &attr)) != NULL;
}

static bool undo_qp(void)
{
    return ok(ibv_destroy_qp(qp));
}

static bool do_flow(void)
{
    struct {
        struct ibv_flow_attr attr;
        struct ibv_flow_spec_eth eth;
    } rule = {
        .attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1, .port = 1 },
        .eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth), .val.ether_type = 0xb588, .mask.ether_type = 0xffff },
    };

    return (flow = ibv_create_flow(qp, &rule.attr)) != NULL;
}

static bool undo_flow(void)
{
    return ok(ibv_destroy_flow(flow));
}

static bool modify(enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {
        .qp_state = state,
        .port_num = 1,
        .path_mtu = IBV_MTU_256,
        .dest_qp_num = qp->qp_num,
        .max_dest_rd_atomic = 1,
        .max_rd_atomic = 1,
        .min_rnr_timer = 1,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = own_path(&hca),
    };

    return ok(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask));
}

static bool undo_connect(void)
{
    return modify(IBV_QPS_RESET, 0);
}

/* Where it failed before, the QP is in any state on the way. */
static bool do_connect(void)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    return undo_connect() &&
           modify(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
           modify(IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                   IBV_QP_MIN_RNR_TIMER) &&
           modify(IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_MAX_QP_RD_ATOMIC) &&
           !ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
}

static void prepare_qp_test(char **arguments)
{
    prepare_verbs(arguments);
    check(do_cq());
}

static void prepare_connect(char **arguments)
{
    prepare_qp_test(arguments);
    check(do_qp());
}

static void prepare_flow(char **arguments)
{
    struct ibv_qp_init_attr attr = { .cap = { .max_recv_wr = 1, .max_recv_sge = 1 }, .qp_type = IBV_QPT_RAW_PACKET };

    prepare_qp_test(arguments);
    attr.send_cq = attr.recv_cq = cq;
    qp = ibv_create_qp(hca.pd, &attr);
    check(qp);
}

static bool do_resize(void)
{
    larger = !larger;
    return ok(ibv_resize_cq(cq, larger ? 4 * queue_entries : queue_entries));
}

static void prepare_srq_resize(char **arguments)
{
    prepare_verbs(arguments);
    check(do_srq());
}

static bool do_srq_resize(void)
{
    struct ibv_srq_attr attr = { .max_wr = larger ? queue_entries : 4 * queue_entries };

    larger = !larger;
    return ok(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
}

static void prepare_rereg(char **arguments)
{
    prepare_verbs(arguments);
    check(do_mr());
}

/*
 * A region whose reregistration failed is of no use, and the verbs let it only be freed. The loop calls this without failures
 * after each one.
 */
static bool do_rereg(void)
{
    static bool spoiled;

    if (spoiled) {
        check(undo_mr());
        check(do_mr());
    }
    larger = !larger;
    spoiled = !ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, hca.pd, memory, larger ? REGION_SIZE / 2 : REGION_SIZE, 0));
    return !spoiled;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

struct operation {
    const char *name;
    int arguments;
    void (*prepare)(char **arguments);
    bool (*act)(void);
    bool (*undo)(void);
    bool starts; /* the card, with thousands of allocations, most of them the RDMA core's for its tables and files */
};

static const struct operation operations[] = {
    { "bind", 1, prepare_bind, do_bind, do_unbind, true },
    { "unbind", 1, prepare_bind, do_unbind, do_bind, true },
    { "reset", 1, prepare_reset, do_reset, nothing, true },
    { "up", 1, prepare_up, do_up, undo_up, false },
    { "mtu", 2, prepare_mtu, do_mtu, undo_mtu, false },
    { "read", 1, prepare_read, do_read, nothing, false },
    { "open", 0, find_device, do_open, undo_open, false },
    { "pd", 0, prepare_verbs, do_pd, undo_pd, false },
    { "cq", 0, prepare_verbs, do_cq, undo_cq, false },
    { "resize", 0, prepare_qp_test, do_resize, nothing, false },
    { "srq", 0, prepare_verbs, do_srq, undo_srq, false },
    { "srq-resize", 0, prepare_srq_resize, do_srq_resize, nothing, false },
    { "xrcd", 0, prepare_verbs, do_xrcd, undo_xrcd, false },
    { "mr", 0, prepare_verbs, do_mr, undo_mr, false },
    { "mw", 0, prepare_verbs, do_mw, undo_mw, false },
    { "dm", 0, prepare_verbs, do_dm, undo_dm, false },
    { "dm-mr", 0, prepare_dm_mr, do_dm_mr, undo_mr, false },
    { "rereg", 0, prepare_rereg, do_rereg, nothing, false },
    { "qp", 0, prepare_qp_test, do_qp, undo_qp, false },
    { "flow", 0, prepare_flow, do_flow, undo_flow, false },
    { "connect", 0, prepare_connect, do_connect, undo_connect, false },
};

/* Which allocation fails next: all of the first, among which are the driver's; of many others ever fewer. */
static int next_failure(const struct operation *operation, int n)
{
    return n + 1 + (operation->starts && n >= EACH_OF ? n / 32 : 0);
}

/* Give how many failures there were. */
static int fail_each(const struct operation *operation)
{
    int failures = 0;

    for (int n = 1; n < MAX_FAILURES; n = next_failure(operation, n)) {
        bool done, failed;

        arm(n);
        done = operation->act();
        failed = disarm();
        if (done) {
            check(operation->undo());
        }
        if (!failed) {
            check(done);
            return failures;
        }
        failures++;
        /* The next failure, too, finds out whether a card starts. */
        if (!operation->starts || failures % 16 == 0) {
            check(operation->act());
            check(operation->undo());
        }
    }
    check(!"an end of failures");
    return 0;
}

/* The kernel gives back all that a process had when it ends, whatever fails. */
static int fail_at_exit(void)
{
    for (int n = 1; n <= MAX_EXIT; n++) {
        int status;
        pid_t child = fork();

        check(child >= 0);
        if (!child) {
            open_injector();
            prepare_verbs(NULL);
            check(do_mr() && do_cq() && do_qp() && do_connect());
            arm(n);
            _exit(0);
        }
        check(waitpid(child, &status, 0) == child && status == 0);
    }
    return MAX_EXIT;
}

static void report(const char *name, int failures)
{
    printf("%s: %d failures\n", name, failures);
    check(failures > 0);
}

int main(int argc, char **argv)
{
    check(argc >= 2);
    if (!strcmp(argv[1], "exit")) {
        report(argv[1], fail_at_exit());
        return 0;
    }
    open_injector();
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (!strcmp(argv[1], operations[i].name)) {
            check(argc == 2 + operations[i].arguments);
            operations[i].prepare(argv + 2);
            report(argv[1], fail_each(&operations[i]));
            return 0;
        }
    }
    check(!"an operation");
}
