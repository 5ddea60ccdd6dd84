/* The tests' few tools: a check that counts, and a random stream that is the same in every run. Each
 * test program ends with `N checks, N failed`, where one check is one condition that held or not.
 */
#ifndef MR_CHECK_H
#define MR_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "../base.h"

static u64 check_passed, check_failed;

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (condition) {                                                                     \
            check_passed++;                                                                  \
        } else if (++check_failed <= 20) {                                                   \
            printf("%s:%d: %s: not so: %s\n", __FILE__, __LINE__, __func__, #condition);     \
        }                                                                                    \
    } while (0)

MR_INLINE int check_report(void)
{
    printf("%llu checks, %llu failed\n", (unsigned long long)(check_passed + check_failed),
           (unsigned long long)check_failed);
    return check_failed != 0;
}

static u64 check_state = 1;

/* A draw below n, n > 0. */
static inline u64 draw(u64 n) { return mr_random(7, check_state++) % n; }

static const struct mr_config check_config = { .hash_seed = 0x1234, .sketch_seed = 0x5678 };

#endif
