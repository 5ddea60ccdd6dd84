/* explore: runs functions as fibers and visits every order of their steps with a bounded number of preemptions.
 *
 * After Musuvathi and Qadeer, Iterative context bounding for systematic testing of multithreaded programs, PLDI 2007: a
 * fiber goes on until it waits or ends, but at no more than `bound` points, where another one goes on instead; of these
 * orders all are visited, depth first. Most errors need two preemptions. A step is what lies between two MR_POINTs, so that
 * orders of memory are not explored: threads under ThreadSanitizer are for that (transact_threads.c).
 *
 * A header under test is included after this one: its MR_POINT is a point, and its sched_yield a wait.
 */
#ifndef MR_EXPLORE_H
#define MR_EXPLORE_H

#include <sched.h>
#include <ucontext.h>

static void explore_point(void);
static void explore_wait(void);
#define MR_POINT() explore_point()
#define sched_yield() explore_wait()
#define LOCK_SPINS 0u

#include "check.h"

#define EXPLORE_FIBERS 4u
#define EXPLORE_STACK (256u << 10)
#define EXPLORE_DEPTH 4096u
/* Points of one run, beyond which it makes no progress. */
#define EXPLORE_LONG 20000u

static struct {
    ucontext_t host, fiber[EXPLORE_FIBERS];
    u8 *stack[EXPLORE_FIBERS];
    u32 fibers, running, alive; /* how many, which, bit set of those that have not ended */
    int inside;                 /* a fiber is running */
    u32 bound, preemptions, points;
    u32 depth, replay; /* choices of this run, and how many of them are given */
    u8 choice[EXPLORE_DEPTH], choices[EXPLORE_DEPTH];
    int stuck;
    u64 runs;
    void (*body)(u32 fiber);
} explore;

/* One of n > 0 choices. */
static u32 explore_choose(u32 n)
{
    u32 at = explore.depth;

    if (n == 1)
        return 0;
    if (at == EXPLORE_DEPTH) {
        explore.stuck = 1;
        return 0;
    }
    explore.depth++;
    if (at >= explore.replay) {
        explore.choice[at] = 0;
        explore.choices[at] = (u8)n;
    }
    return explore.choice[at];
}

/* The n-th fiber after this one that has not ended. */
static u32 explore_other(u32 n)
{
    for (u32 i = 1; i < explore.fibers; i++) {
        u32 fiber = (explore.running + i) % explore.fibers;

        if (explore.alive >> fiber & 1 && n-- == 0)
            return fiber;
    }
    return explore.running;
}

static u32 explore_others(void) { return (u32)__builtin_popcount(explore.alive & ~(1u << explore.running)); }

static void explore_switch(u32 to)
{
    u32 from = explore.running;

    explore.running = to;
    swapcontext(&explore.fiber[from], &explore.fiber[to]);
}

/* Ends a run that makes no progress; its fibers are left as they are. */
static void explore_stop(void)
{
    explore.stuck = 1;
    explore.inside = 0;
    swapcontext(&explore.fiber[explore.running], &explore.host);
}

static void explore_point(void)
{
    u32 choice;

    if (!explore.inside)
        return;
    if (++explore.points > EXPLORE_LONG)
        explore_stop();
    if (explore.preemptions == explore.bound || explore_others() == 0)
        return;
    choice = explore_choose(1 + explore_others());
    if (choice == 0)
        return;
    explore.preemptions++;
    explore_switch(explore_other(choice - 1));
}

/* Who waits gives way to the next one, so that nobody waits for one that never comes to run. */
__attribute__((unused)) static void explore_wait(void)
{
    if (!explore.inside)
        return;
    if (++explore.points > EXPLORE_LONG)
        explore_stop();
    if (explore_others() > 0)
        explore_switch(explore_other(0));
}

static void explore_fiber(void)
{
    explore.body(explore.running);
    explore.alive &= ~(1u << explore.running);
    if (explore.alive)
        explore_switch(explore_other(explore_choose(explore_others())));
    explore.inside = 0;
    swapcontext(&explore.fiber[explore.running], &explore.host);
}

/* One order of steps, the one that was chosen. */
static void explore_run(u32 fibers, void (*body)(u32 fiber))
{
    explore.fibers = fibers;
    explore.body = body;
    explore.alive = (1u << fibers) - 1;
    explore.depth = explore.preemptions = explore.points = 0;
    explore.stuck = 0;
    explore.runs++;
    for (u32 i = 0; i < fibers; i++) {
        if (!explore.stack[i])
            explore.stack[i] = (u8 *)malloc(EXPLORE_STACK);
        /* A run that was stopped has left its frames. */
        mr_allow(explore.stack[i], EXPLORE_STACK);
        getcontext(&explore.fiber[i]);
        explore.fiber[i].uc_stack.ss_sp = explore.stack[i];
        explore.fiber[i].uc_stack.ss_size = EXPLORE_STACK;
        explore.fiber[i].uc_link = NULL;
        makecontext(&explore.fiber[i], explore_fiber, 0);
    }
    explore.running = 0;
    explore.running = explore_choose(fibers);
    explore.inside = 1;
    swapcontext(&explore.host, &explore.fiber[explore.running]);
    explore.inside = 0;
}

/* Begins with the first order. */
static void explore_first(u32 bound)
{
    explore.bound = bound;
    explore.replay = explore.depth = 0;
}

/* The order after the one that was run; 0: that was the last. */
static int explore_next(void)
{
    u32 at = explore.depth;

    while (at > 0 && explore.choice[at - 1] + 1u == explore.choices[at - 1])
        at--;
    if (at == 0)
        return 0;
    explore.choice[at - 1]++;
    explore.replay = at;
    return 1;
}

#endif
