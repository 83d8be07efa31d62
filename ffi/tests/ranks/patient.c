/* Loaded into the ranks of tests before their MPI: whoever waits in vain gives the core to another rank.
 *
 * Tests start more ranks than there are cores. MPICH polls UCX without ever yielding, so each turn of a barrier costs the
 * time slice of whoever polls: 20 ms with 4 ranks on 2 cores, and 12 us with this. Ranks with a core each poll about 0.1 ms
 * before, or whatever else wants the core would get a time slice for each message. Programs without UCX are as before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static int polls(void) {
    const char *ranks = getenv("PMI_SIZE"); /* from the launcher of MPICH */
    return ranks && atoi(ranks) <= sysconf(_SC_NPROCESSORS_ONLN) ? 1000 : 1;
}

unsigned ucp_worker_progress(void *worker) {
    static unsigned (*next)(void *);
    static int in_vain, most;
    if (!next) {
        next = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
        most = polls();
    }
    unsigned events = next(worker);
    if (events > 0) {
        in_vain = 0;
    } else if (++in_vain >= most) {
        in_vain = 0;
        sched_yield();
    }
    return events;
}
