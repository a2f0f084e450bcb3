/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An MPI program that checks what it receives: mpi-test CASE ROUNDS, or "all" that check. Every element of every message is a
 * function of who sent it, to whom, in which round, and of its place. A rank that finds another one ends the job with status 2.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

/* Elements of 8 bytes: one; about the limits of eager messages; such as go by rendezvous, and by several pieces. */
#define LARGEST 65537
static const int sizes[] = { 1, 11, 127, 1000, 1031, 4096, 16384, LARGEST };
#define SIZES (int)(sizeof(sizes) / sizeof(sizes[0]))

static _Noreturn void wrong(const char *what, uint64_t found, uint64_t wanted)
{
    printf("rank %d: %s is %#llx, not %#llx\n", rank, what, (unsigned long long)found, (unsigned long long)wanted);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 2);
    abort();
}

static void same(const char *what, uint64_t found, uint64_t wanted)
{
    if (found != wanted) {
        wrong(what, found, wanted);
    }
}

static uint64_t element(int from, int to, int round, int place)
{
    return ((uint64_t)from << 56 | (uint64_t)to << 48 | (uint64_t)round << 32 | (uint32_t)place) * 0x9e3779b97f4a7c15;
}

static uint64_t *numbers(int count)
{
    uint64_t *all = malloc(count * sizeof(*all));

    if (!all) {
        wrong("memory", 0, count);
    }
    return all;
}

static void fill(uint64_t *data, int to, int round, int count)
{
    for (int i = 0; i < count; i++) {
        data[i] = element(rank, to, round, i);
    }
}

static void look(const char *what, const uint64_t *data, int from, int round, int count)
{
    for (int i = 0; i < count; i++) {
        same(what, data[i], element(from, rank, round, i));
    }
}

/* --- two-sided ------------------------------------------------------------------------------------------------------ */

/* Each to its right and from its left. */
static void ring(int rounds)
{
    uint64_t *out = numbers(LARGEST), *in = numbers(LARGEST);
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZES; i++) {
            MPI_Status status;
            int count;

            fill(out, right, round, sizes[i]);
            memset(in, 0, LARGEST * sizeof(*in));
            MPI_Sendrecv(out, sizes[i], MPI_UINT64_T, right, round, in, LARGEST, MPI_UINT64_T, left, round,
                         MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_UINT64_T, &count);
            same("the length", count, sizes[i]);
            look("an element", in, left, round, sizes[i]);
        }
    }
    free(in);
    free(out);
}

/* Many messages at once, which are received in another order than sent, by their tags. */
#define CROWD 64

static void crowd(int rounds)
{
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, size = 700;
    uint64_t *out = numbers(CROWD * size), *in = numbers(CROWD * size);

    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[2 * CROWD];

        for (int i = 0; i < CROWD; i++) {
            fill(out + i * size, right, i, size);
            MPI_Isend(out + i * size, size, MPI_UINT64_T, right, i, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* they are unexpected */
        for (int i = CROWD - 1; i >= 0; i--) {
            MPI_Irecv(in + i * size, size, MPI_UINT64_T, left, i, MPI_COMM_WORLD, &requests[CROWD + i]);
        }
        MPI_Waitall(2 * CROWD, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < CROWD; i++) {
            look("an element", in + i * size, left, i, size);
        }
    }
    free(in);
    free(out);
}

/* --- collective ------------------------------------------------------------------------------------------------------- */

static void all_reduce(int rounds)
{
    uint64_t *out = numbers(LARGEST), *in = numbers(LARGEST);

    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZES; i++) {
            fill(out, 0, round, sizes[i]);
            MPI_Allreduce(out, in, sizes[i], MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
            for (int k = 0; k < sizes[i]; k++) {
                uint64_t sum = 0;

                for (int from = 0; from < ranks; from++) {
                    sum += element(from, 0, round, k);
                }
                same("a sum", in[k], sum);
            }
        }
    }
    free(in);
    free(out);
}

static void all_to_all(int rounds)
{
    uint64_t *out = numbers(LARGEST * ranks), *in = numbers(LARGEST * ranks);

    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZES; i++) {
            for (int to = 0; to < ranks; to++) {
                fill(out + to * sizes[i], to, round, sizes[i]);
            }
            MPI_Alltoall(out, sizes[i], MPI_UINT64_T, in, sizes[i], MPI_UINT64_T, MPI_COMM_WORLD);
            for (int from = 0; from < ranks; from++) {
                look("an element", in + from * sizes[i], from, round, sizes[i]);
            }
        }
    }
    free(in);
    free(out);
}

/* --- one-sided -------------------------------------------------------------------------------------------------------- */

/* Everybody writes a slice of its own into everybody's window, and reads it back from there. */
static void put_and_get(MPI_Win window, uint64_t *memory, int round, int size)
{
    uint64_t *out = numbers(size), *in = numbers(size);

    MPI_Win_fence(0, window);
    for (int to = 0; to < ranks; to++) {
        fill(out, to, round, size);
        MPI_Put(out, size, MPI_UINT64_T, to, (MPI_Aint)rank * size, size, MPI_UINT64_T, window);
        MPI_Win_fence(0, window); /* before `out` changes */
    }
    for (int from = 0; from < ranks; from++) {
        look("what was put", memory + from * size, from, round, size);
    }
    for (int to = 0; to < ranks; to++) {
        MPI_Get(in, size, MPI_UINT64_T, to, (MPI_Aint)rank * size, size, MPI_UINT64_T, window);
        MPI_Win_fence(0, window);
        for (int i = 0; i < size; i++) {
            same("what was got", in[i], element(rank, to, round, i));
        }
    }
    free(in);
    free(out);
}

/* All add to one counter of rank 0's: each value that it had is had by one. Then they agree on who was first. */
static void atomics(MPI_Win window, uint64_t *memory, int times)
{
    uint64_t one = 1, before, last = 0, nobody = ~0ull, me = rank, none;

    memory[0] = 0;
    memory[1] = nobody;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < times; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, 0, 0, MPI_SUM, window);
        MPI_Win_flush(0, window);
        if (i && before <= last) {
            wrong("a counter that only grows", before, last);
        }
        last = before;
    }
    MPI_Compare_and_swap(&me, &nobody, &none, MPI_UINT64_T, 0, 1, window);
    MPI_Win_flush(0, window);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(&before, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, window);
    MPI_Get(&last, 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T, window);
    MPI_Win_unlock(0, window);
    same("the counter", before, (uint64_t)times * ranks);
    /* Whoever found nobody is who is there, and no other. */
    same("to have been first", none == nobody, last == (uint64_t)rank);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void one_sided(int rounds)
{
    uint64_t *memory;
    MPI_Win window;

    MPI_Win_allocate((MPI_Aint)LARGEST * ranks * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &window);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < SIZES; i++) {
            put_and_get(window, memory, round, sizes[i]);
        }
        atomics(window, memory, 50);
    }
    MPI_Win_free(&window);
}

/* ---------------------------------------------------------------------------------------------------------------------- */

static void figures(int rounds)
{
    static const int lengths[] = { 8, 65536 };

    for (int i = 0; i < 2; i++) {
        uint8_t *data = calloc(1, lengths[i]);
        double start;

        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        for (int round = 0; round < rounds && rank < 2; round++) {
            for (int turn = 0; turn < 2; turn++) {
                if (rank == turn) {
                    MPI_Send(data, lengths[i], MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
                } else {
                    MPI_Recv(data, lengths[i], MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                }
            }
        }
        if (!rank) {
            printf("%d bytes: %.1f us a way\n", lengths[i], (MPI_Wtime() - start) * 1e6 / rounds / 2);
        }
        free(data);
    }
}

/* Until somebody ends it. */
static void for_ever(int rounds)
{
    for (;;) {
        ring(rounds);
    }
}

static const struct {
    const char *name;
    void (*run)(int rounds);
} cases[] = {
    { "ring", ring }, { "crowd", crowd }, { "all_reduce", all_reduce }, { "all_to_all", all_to_all },
    { "one_sided", one_sided }, { "figures", figures },
    { "for_ever", for_ever },
};
#define LASTING 2 /* of these, the last ones are not among "all" */

int main(int argc, char **argv)
{
    size_t count = sizeof(cases) / sizeof(cases[0]);
    int found = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    printf("rank %d of %d: begins\n", rank, ranks);
    fflush(stdout);
    for (size_t i = 0; argc == 3 && i < count; i++) {
        if (!strcmp(argv[1], cases[i].name) || (!strcmp(argv[1], "all") && i < count - LASTING)) {
            cases[i].run(atoi(argv[2]));
            found++;
        }
    }
    same("a case of that name", found != 0, 1);
    printf("rank %d of %d: done\n", rank, ranks);
    MPI_Finalize();
    return 0;
}
