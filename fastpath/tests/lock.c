/* lock: threads that read and write together, switched at places that a seed chooses. */
#include <pthread.h>

static void switch_threads(void);
#define MR_POINT() switch_threads()
#define LOCK_SPINS 16u
#include "../sync/lock.h"
#include "check.h"

#define THREADS 4u
#define WORDS 4u
#define ROUNDS 3000u

/* The threads' own draws, so that a seed says where each of them gives way. */
static __thread u64 yield_state, yield_seed;

static void switch_threads(void)
{
    if (mr_random(yield_seed, yield_state++) % 8 == 0)
        sched_yield();
}

struct common {
    struct lock lock;
    u64 seed;
    u64 share; /* of 1000 rounds, how many write */
    int locked;
    u64 word[WORDS]; /* equal whenever nobody writes */
    u64 order[THREADS * ROUNDS + 1];
};

struct worker {
    struct common *common;
    u32 core;
    u64 torn, lost, backward, overtaken, writes;
};

/* Relaxed, so that leaving the lock out is wrong but defined. */
static u64 load(const u64 *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static void store(u64 *p, u64 v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }

static u64 look(struct worker *w)
{
    u64 first = load(&w->common->word[0]);

    for (u32 i = 1; i < WORDS; i++) {
        switch_threads();
        w->torn += load(&w->common->word[i]) != first;
    }
    return first;
}

static void change(struct worker *w)
{
    for (u32 i = 0; i < WORDS; i++) {
        u64 value = load(&w->common->word[i]);

        switch_threads();
        store(&w->common->word[i], value + 1);
    }
    w->writes++;
}

static void *work(void *argument)
{
    struct worker *w = argument;
    struct common *c = w->common;
    u64 last = 0;

    yield_seed = mr_random(c->seed, w->core);
    yield_state = 0;
    for (u64 round = 0; round < ROUNDS; round++) {
        u64 commit, before;

        if (!c->locked) {
            look(w);
            if (mr_random(yield_seed, 1000000 + round) % 1000 < c->share)
                change(w);
            continue;
        }
        lock_read(&c->lock, w->core);
        before = look(w);
        lock_read_again(&c->lock, w->core);
        commit = lock_commit_read(&c->lock);
        if (mr_random(yield_seed, 1000000 + round) % 1000 < c->share) {
            u64 wrote;

            lock_read_to_write(&c->lock, w->core);
            w->overtaken += load(&c->word[0]) != before;
            commit = lock_commit_write(&c->lock);
            change(w);
            wrote = load(&c->word[0]);
            c->order[commit / 2] = wrote;
            if (round % 2) {
                lock_write_to_read(&c->lock, w->core);
                w->lost += look(w) != wrote || lock_commit_read(&c->lock) != commit + 1;
                lock_read_end(&c->lock, w->core);
            } else {
                lock_write_end(&c->lock);
            }
        } else {
            /* A reader's number says which writers came before it. */
            w->lost += look(w) != commit / 2;
            lock_read_end(&c->lock, w->core);
        }
        w->backward += commit < last;
        last = commit;
    }
    return NULL;
}

static struct worker together(struct common *c)
{
    struct worker worker[THREADS] = { 0 }, sum = { 0 };
    pthread_t thread[THREADS];

    for (u32 i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){ .common = c, .core = i };
        CHECK(pthread_create(&thread[i], NULL, work, &worker[i]) == 0);
    }
    for (u32 i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        sum.torn += worker[i].torn;
        sum.lost += worker[i].lost;
        sum.backward += worker[i].backward;
        sum.overtaken += worker[i].overtaken;
        sum.writes += worker[i].writes;
    }
    return sum;
}

static void exclusion(u64 seed, u64 share)
{
    struct common *c = calloc(1, sizeof(*c));
    struct worker sum;

    c->seed = seed;
    c->share = share;
    c->locked = 1;
    CHECK(lock_create(&c->lock, THREADS) == 0);
    sum = together(c);
    CHECK(sum.torn == 0);
    CHECK(sum.lost == 0);
    CHECK(sum.backward == 0);
    CHECK(sum.writes == c->lock.commits && sum.writes == c->word[0]);
    for (u64 i = 1; i <= sum.writes; i++)
        CHECK(c->order[i] == i);
    lock_destroy(&c->lock);
    free(c);
}

/* The same without the lock must show, or the test above shows nothing. */
static void dropped(void)
{
    u64 seen = 0;

    for (u64 seed = 0; seed < 20 && !seen; seed++) {
        struct common *c = calloc(1, sizeof(*c));
        struct worker sum;

        c->seed = seed;
        c->share = 500;
        sum = together(c);
        seen = sum.torn + (sum.writes - c->word[0]);
        free(c);
    }
    CHECK(seen > 0);
}

struct turns {
    struct lock lock;
    u32 stop;
    u64 waited;    /* turns in which a writer came to wait */
    u64 overtaken; /* turns that came again before that writer's */
};

static void *greedy(void *argument)
{
    struct turns *t = argument;
    u64 promised = 0;

    while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE)) {
        lock_read(&t->lock, 0);
        t->overtaken += t->lock.commits < promised;
        if (lock_wanted(&t->lock, 0)) {
            t->waited++;
            promised = t->lock.commits + 1;
        }
        lock_read_end(&t->lock, 0);
    }
    return NULL;
}

/* No reader overtakes a writer that waits at its line. */
static void fairness(void)
{
    struct turns t = { 0 };
    pthread_t thread;

    CHECK(lock_create(&t.lock, 2) == 0);
    CHECK(pthread_create(&thread, NULL, greedy, &t) == 0);
    for (u32 i = 0; i < 2000; i++) {
        lock_write(&t.lock);
        lock_commit_write(&t.lock);
        lock_write_end(&t.lock);
        sched_yield();
    }
    __atomic_store_n(&t.stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    CHECK(t.overtaken == 0);
    if (!t.waited)
        printf("skipped: no writer came to wait for a reader here\n");
    lock_destroy(&t.lock);
}

/* One thread: what is taken is given back, tickets wrap around. */
static void alone(void)
{
    struct lock k;

    CHECK(lock_create(&k, 0) == -EINVAL);
    CHECK(lock_create(&k, LOCK_CORES_MAX + 1) == -E2BIG);
    CHECK(lock_create(&k, 3) == 0);
    for (u32 i = 0; i < 3; i++)
        k.line[i].next = k.line[i].serving = UINT32_MAX - 2;
    k.writers.next = k.writers.serving = UINT32_MAX - 2;
    for (u32 i = 0; i < 8; i++) {
        lock_read(&k, i % 3);
        CHECK(!lock_wanted(&k, i % 3));
        lock_read_again(&k, i % 3);
        CHECK(lock_commit_read(&k) == 2 * i + 1);
        lock_read_to_write(&k, i % 3);
        CHECK(lock_commit_write(&k) == 2 * i + 2);
        lock_write_to_read(&k, i % 3);
        lock_read_end(&k, i % 3);
        lock_write(&k);
        lock_write_end(&k);
    }
    for (u32 i = 0; i < 3; i++)
        CHECK(k.line[i].next == k.line[i].serving && k.line[i].next == UINT32_MAX - 2 + 8 * 2 + 3 - (i == 2));
    lock_destroy(&k);
}

int main(void)
{
    alone();
    fairness();
    for (u64 seed = 0; seed < 3; seed++) {
        exclusion(seed, 1);
        exclusion(seed, 100);
        exclusion(seed, 1000);
    }
    dropped();
    return check_report();
}
