/* cured_sum_mpi.h: packs of cured_sum.h through an Allreduce, however many there are. An MPI counts elements in an int, so more than
 * CURED_SUM_MPI_MOST numbers go in pieces. Any MPI from 3.0 on. Programs with fewer may call MPI_Allreduce themselves.
 *
 * All ranks of the communicator call with the same number of numbers; a rank without elements gives the packs of empty sums. packs is
 * read and written in place (MPI_IN_PLACE). Functions return what MPI returns.
 *
 * Thread: any that MPI allows. Owner: the caller owns packs and requests, until the requests are complete. Licence: Apache-2.0. */
#ifndef CURED_SUM_MPI_H
#define CURED_SUM_MPI_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifndef CURED_SUM_MPI_MOST
#define CURED_SUM_MPI_MOST ((uint64_t)1 << 30) /* 8 GiB; at most INT_MAX */
#endif

/* How many requests cured_sum_iallreduce starts; 1 up to CURED_SUM_MPI_MOST numbers. */
static inline uint64_t cured_sum_requests(uint64_t numbers) {
    return numbers / CURED_SUM_MPI_MOST + (numbers % CURED_SUM_MPI_MOST != 0);
}

/* Adds up the packs of all ranks, into those of each. */
static inline int cured_sum_allreduce(int64_t *packs, uint64_t numbers, MPI_Comm comm) {
    for (uint64_t done = 0, now; done < numbers; done += now) {
        now = numbers - done < CURED_SUM_MPI_MOST ? numbers - done : CURED_SUM_MPI_MOST;
        const int status = MPI_Allreduce(MPI_IN_PLACE, packs + done, (int)now, MPI_INT64_T, MPI_SUM, comm);
        if (status != MPI_SUCCESS) return status;
    }
    return MPI_SUCCESS;
}

/* The same, begun: wait for all of the cured_sum_requests(numbers) requests (MPI_Waitall) before the packs are read. */
static inline int cured_sum_iallreduce(int64_t *packs, uint64_t numbers, MPI_Comm comm, MPI_Request *requests) {
    /* So that all may be waited for where one was not started. */
    for (uint64_t i = 0; i < cured_sum_requests(numbers); i++) requests[i] = MPI_REQUEST_NULL;
    for (uint64_t done = 0, now; done < numbers; done += now) {
        now = numbers - done < CURED_SUM_MPI_MOST ? numbers - done : CURED_SUM_MPI_MOST;
        const int status = MPI_Iallreduce(MPI_IN_PLACE, packs + done, (int)now, MPI_INT64_T, MPI_SUM, comm, requests++);
        if (status != MPI_SUCCESS) return status;
    }
    return MPI_SUCCESS;
}

#endif
