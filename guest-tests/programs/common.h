/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the test programs have in common: the device, queue pairs of one process that talk to each other, and checks that
 * end the program.
 */
#ifndef COMMON_H
#define COMMON_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACCESS_ALL \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define QKEY 0x11111111u
#define NO_KEY 0xdead00u /* nobody has it */

/* What does not hold, or did not do what it should, ends the program with a line that says where. */
#define check(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, #condition))
_Noreturn void fail(const char *file, int line, const char *what);

/* A case of a program, by its name; the last of a list has none. */
struct test_case {
    const char *name;
    void (*run)(void);
};

struct device;

/*
 * main() of a program of cases: that of the first argument, with the device open, between begin() and end(), each of which may be
 * NULL; one that fails ends the program. 2: there is none, and a line says what there is.
 */
int run_case(int argc, char **argv, const struct test_case *cases, struct device *device, void (*begin)(void), void (*end)(void));

/* A device, its only port and a protection domain. */
struct device {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    union ibv_gid gid;
};

/* The first one; the one of this name. */
void open_device(struct device *device);
void open_device_named(struct device *device, const char *name);
void close_device(struct device *device);

/* Say this, a line, and wait for SIGUSR1, which may come as soon as the line is read. */
void __attribute__((format(printf, 1, 2))) await_start(const char *format, ...);

/* Memory of its own pages, zeroed, registered with ACCESS_ALL. */
struct region {
    uint8_t *addr;
    size_t length;
    struct ibv_mr *mr;
};

void create_region(struct device *device, struct region *region, size_t length);
void destroy_region(struct region *region);
/* An entry for length bytes at an offset. */
struct ibv_sge sge_of(const struct region *region, size_t offset, uint32_t length);

/* Of a provider that has no extended ones: plain ones, for cases that need no others. */
struct ibv_cq_ex *create_cq(struct device *device, unsigned int entries);
void destroy_cq(struct ibv_cq_ex *cq);
/* A QP for ibv_wr_*() with work_requests in each queue and 4 elements a list. */
struct ibv_qp *create_qp(struct device *device, struct ibv_cq_ex *cq, enum ibv_qp_type type, unsigned int work_requests,
                         unsigned int inline_data);
/* To the same port; Ethernet has no path without addresses. */
struct ibv_ah_attr own_path(const struct device *device);
/* From RESET to RTR, and on to RTS, with the QP of that number on the same port. */
void prepare_qp(struct device *device, struct ibv_qp *qp, uint32_t peer);
void connect_qp(struct device *device, struct ibv_qp *qp, uint32_t peer);
/* Two with each other. */
void connect_pair(struct device *device, struct ibv_qp *qp[2]);
/* Two RC QPs, connected. */
void create_connection(struct device *device, struct ibv_cq_ex *cq, unsigned int work_requests, struct ibv_qp *qp[2]);
/* Another life of two that were connected, from RESET on. */
void reconnect(struct device *device, struct ibv_qp *qp[2]);
/* Their end. */
void destroy_pair(struct ibv_qp *qp[2]);
void to_state(struct ibv_qp *qp, enum ibv_qp_state state);
enum ibv_qp_state state_of(struct ibv_qp *qp);

void post_recv(struct ibv_qp *qp, uint64_t wr_id, struct ibv_sge sge);
void post_srq(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge sge);
/* One signalled work request of a connected QP. */
void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge sge, uint64_t remote_addr,
          uint32_t rkey);
/* Of ibv_start_poll(): the next completion, which has to come within seconds. */
void start_poll(struct ibv_cq_ex *cq);
/* The same of ibv_poll_cq(). */
struct ibv_wc next_completion(struct ibv_cq_ex *cq);
void expect_completion(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_status status);
/* Take what is there. */
void discard_completions(struct ibv_cq_ex *cq);

/* A connection by TCP with the process that listens at an address, or NULL, with the one that connects to us. */
int meet_peer(const char *port, const char *address);
/* Say what we are, and hear what the other one is, which has the same size. */
void exchange_with(int fd, const void *own, void *other, size_t size);

/* Bytes that differ by seed. */
void fill_pattern(uint8_t *at, unsigned int seed, unsigned int length);
void check_pattern(const uint8_t *at, unsigned int seed, unsigned int length);

double seconds_now(void);
/* Seconds: far more than any retry takes. Slow guests have a factor. */
double patience(void);

#endif /* COMMON_H */
