/* Preloaded into the ranks of tests before their MPI: lets waiting ranks sleep briefly.
 *
 * Tests start more ranks than there are cores, several programs at once, on loaded machines. MPICH polls UCX and never yields the
 * core: a barrier of 4 ranks on 2 cores takes 20 ms, because each of its steps waits for the time slice of a polling rank. With
 * this library it takes 0.3 ms. Yielding alone is faster on an idle machine (12 us), but next to a busy program each poll then
 * takes a time slice (8 ms); ranks that slept are scheduled first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/prctl.h>
#include <time.h>

enum { POLLS = 300 }; /* unsuccessful polls before a sleep: about 0.03 ms */
static int in_vain;

/* Open MPI calls it after each unsuccessful poll if it is configured to yield. */
int sched_yield(void) {
    if (++in_vain < POLLS) return 0;
    in_vain = 0;
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    struct timespec moment = {.tv_nsec = 50000};
    nanosleep(&moment, 0);
    return 0;
}

/* MPICH calls it for each poll. */
unsigned ucp_worker_progress(void *worker) {
    static unsigned (*next)(void *);
    if (!next) next = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned events = next(worker);
    if (events > 0) {
        in_vain = 0;
    } else {
        sched_yield();
    }
    return events;
}
