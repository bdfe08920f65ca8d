/*
 * bench/crew.c - processes that start together.
 *
 * The crew lives as long as its benchmark: all repetitions of all sides run in
 * the same processes, so both sides meet the same memory and the same cores.
 * Times are taken by every member and joined in shared memory, since on few
 * cores a member may well leave a barrier after another has done its work.
 */
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench_crew {
    int size;
    bool over;
    pthread_barrier_t barrier;
    struct {
        bool worked;
        double start, end, cpu;
    } member[BENCH_CREW];
};

static bench_crew *
new_crew(int size)
{
    CHECK(size <= BENCH_CREW);
    bench_crew *crew = bench_shared(sizeof *crew);
    pthread_barrierattr_t attr;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&crew->barrier, &attr, (unsigned)size);
    crew->size = size;
    return crew;
}

static void
wait_for(const pid_t *pids, int n)
{
    for (int left = n; left > 0; left--) {
        int status;
        if (wait(&status) > 0 && status == 0)
            continue;
        for (int i = 0; i < n; i++)
            kill(pids[i], SIGKILL);
        bench_die("a process of the crew failed");
    }
}

void
bench_run(int size, void (*work)(bench_crew *, int rank, void *ctx), void *ctx)
{
    pid_t pids[BENCH_CREW];
    bench_crew *crew = new_crew(size);
    fflush(stdout);
    for (int rank = 0; rank < size; rank++) {
        SYS(pids[rank] = fork());
        if (pids[rank] > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        work(crew, rank, ctx);
        fflush(stdout);
        _exit(0);
    }
    wait_for(pids, size);
    bench_free(crew, sizeof *crew);
}

void
bench_meet(bench_crew *crew)
{
    pthread_barrier_wait(&crew->barrier);
}

static bench_time
join(const bench_crew *crew)
{
    double start = 1e300, end = 0, cpu = 0;
    for (int i = 0; i < crew->size; i++) {
        if (!crew->member[i].worked)
            continue;
        if (crew->member[i].start < start)
            start = crew->member[i].start;
        if (crew->member[i].end > end)
            end = crew->member[i].end;
        cpu += crew->member[i].cpu;
    }
    return (bench_time){end - start, cpu};
}

bench_time
bench_together(bench_crew *crew, int rank, bench_job *job, void *ctx)
{
    bench_meet(crew);
    bench_time start = bench_now();
    if (job)
        job(ctx);
    bench_time end = bench_now();
    crew->member[rank].worked = job != NULL;
    crew->member[rank].start = start.wall;
    crew->member[rank].end = end.wall;
    crew->member[rank].cpu = end.cpu - start.cpu;
    bench_meet(crew);
    bench_time all = join(crew);
    bench_meet(crew); /* nobody starts anew before all have looked */
    return all;
}

bool
bench_over(bench_crew *crew, int rank, double deadline)
{
    if (rank == 0)
        crew->over = bench_now().wall > deadline;
    bench_meet(crew);
    bool over = crew->over;
    bench_meet(crew);
    return over;
}
