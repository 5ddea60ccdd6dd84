/* points: switches threads at places that a seed chooses, so that a test meets orders that are rare. A
 * module that is emitted for such a test includes this before lock.h; no other does. */
#ifndef MR_SYNC_POINTS_H
#define MR_SYNC_POINTS_H

#include <sched.h>

#include "../base.h"

#ifndef MR_POINT_SEED
#define MR_POINT_SEED 0ull
#endif

/* Of eight places one. */
MR_OUTLINE void points_switch(void)
{
    static u64 threads;
    static __thread u64 stream, step;

    if (step == 0)
        stream = mr_random(MR_POINT_SEED, __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED));
    if (mr_random(stream, step++) % 8 == 0)
        sched_yield();
}

/* Headers of state that came before have none. */
#undef MR_POINT
#define MR_POINT() points_switch()

#endif
