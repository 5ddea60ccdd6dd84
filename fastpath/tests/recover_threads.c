/* recover on real threads: each interleaving of a writer and a reader of one entry, switched by hand; then cores that run
 * freely and lose carriers. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

static void switch_threads(void);
#define MR_POINT() switch_threads()
#include "recover_model.h"

/* ---- two threads of which one runs at a time ---- */

#define POINTS 8u

static sem_t baton[2];
static u32 order, used;        /* bit: who runs after the next point */
static int over_there[2];
static __thread int me = -1;   /* in no such run */

static void hand_over(int to)
{
    sem_post(&baton[to]);
    sem_wait(&baton[me]);
}

static void switch_threads(void)
{
    int next;

    if (me < 0)
        return;
    next = used < POINTS ? order >> used++ & 1 : me;
    if (next != me && !over_there[next])
        hand_over(next);
}

static struct world *pair;
static enum recover_next found;
static struct history_row copied;

static void *writer(void *unused)
{
    (void)unused;
    me = 0;
    sem_wait(&baton[0]);
    while (pair->side[0].next < model.count[0]) {
        recover_put(&pair->group, &pair->core[0], &model.shape, of(0, pair->side[0].next));
        pair->side[0].next++;
    }
    recover_publish(&pair->group, &pair->core[0]);
    over_there[0] = 1;
    sem_post(&baton[1]);
    return NULL;
}

static void *reader(void *unused)
{
    (void)unused;
    me = 1;
    sem_wait(&baton[1]);
    found = recover_ask(&pair->group, &pair->core[1], 0, &copied);
    over_there[1] = 1;
    sem_post(&baton[0]);
    return NULL;
}

/* Core 0 has `before` carriers in its log and puts the others while core 1 asks it for row 1. What is found by core 1 is
 * WAIT, row 1, or where the row has been overwritten STOPPED. Gives the number of orders in which it was something else. */
static u64 interleaved(u32 rows, u32 before, int overwritten)
{
    u64 wrong = 0, word = 0;

    memcpy(&word, model.carrier[0].slot, MODEL_ROW);
    for (order = 0; order < 1u << POINTS; order++) {
        pthread_t thread[2];

        used = 0;
        world_start(pair);
        pair->group.rows = rows;
        while (pair->side[0].next < before) {
            recover_put(&pair->group, &pair->core[0], &model.shape, of(0, pair->side[0].next++));
            recover_publish(&pair->group, &pair->core[0]);
            pair->core[0].applied = pair->core[0].put;
        }
        over_there[0] = over_there[1] = 0;
        pthread_create(&thread[0], NULL, writer, NULL);
        pthread_create(&thread[1], NULL, reader, NULL);
        sem_post(&baton[order >> (POINTS - 1)]);
        pthread_join(thread[0], NULL);
        pthread_join(thread[1], NULL);
        /* The last to end left a post behind. */
        while (!sem_trywait(&baton[0]) || !sem_trywait(&baton[1]))
            ;
        if (found == RECOVER_APPLY)
            wrong += copied.word[0] != word || copied.time != model.carrier[0].time[0];
        else if (found == RECOVER_STOPPED)
            wrong += !overwritten;
        else
            wrong += found != RECOVER_WAIT || overwritten;
    }
    return wrong;
}

static void interleavings(void)
{
    /* One core's carriers, each with its own row. */
    model_sequence(1, 1, 2, 3, 0, 0, 7);
    model.cores = 2;
    model.count[0] = 1;
    pair = (struct world *)aligned_alloc(64, mr_round_up(model_bytes(), 64));
    sem_init(&baton[0], 0, 0);
    sem_init(&baton[1], 0, 0);
    CHECK(interleaved(2, 0, 0) == 0);
    model_fault = RECOVER_FAULT_EARLY;
    CHECK(interleaved(2, 0, 0) > 0);
    model_fault = 0;
    model.count[0] = 3;
    CHECK(interleaved(2, 2, 1) == 0);
    model_fault = HISTORY_FAULT_TORN;
    CHECK(interleaved(2, 2, 1) > 0);
    model_fault = 0;
    free(pair);
}

/* ---- cores that run freely ---- */

#define FREE_CORES 4u
#define AHEAD 200u

static u64 progress[FREE_CORES]; /* of each core, the last number applied */
static u64 recovered, gone, stopped;

static int within(u64 seq)
{
    for (u32 c = 0; c < FREE_CORES; c++)
        if (seq > __atomic_load_n(&progress[c], __ATOMIC_RELAXED) + AHEAD)
            return 0;
    return 1;
}

static void *core(void *which)
{
    u32 c = (u32)(uintptr_t)which;
    struct side *s = &pair->side[c];
    struct recover *r = &pair->core[c];
    struct history_row e;
    u64 missing = 0;

    while (s->next < model.count[c]) {
        enum recover_next next;

        /* No core is so far ahead of another that it overwrites what that one needs. */
        while (!within(of(c, s->next)->seq))
            sched_yield();
        s->end = s->next;
        while (s->end < model.count[c] && s->end < s->next + 32 && within(of(c, s->end)->seq))
            s->end++;
        for (; s->next < s->end; s->next++)
            if (recover_put(&pair->group, r, &model.shape, of(c, s->next)) != RECOVER_TAKEN)
                __atomic_fetch_add(&stopped, 1, __ATOMIC_RELAXED);
        recover_publish(&pair->group, r);
        for (;;) {
            /* What the core has itself is applied where it lies. */
            u32 run = recover_run(&pair->group, r, 1 + (u32)(c + s->next) % 32);
            for (u32 i = 1; i <= run; i++) {
                const struct history_row *own = recover_entry(&pair->group, c, r->applied + i);

                next = own->kind == HISTORY_BEAT ? RECOVER_TIME : RECOVER_APPLY;
                s->state = model_after(s->state, r->applied + i, next, own->time, own->word[0]);
            }
            recover_applied(r, run);
            next = recover_next(&pair->group, r, &e);
            if (next == RECOVER_DONE)
                break;
            if (next == RECOVER_STOPPED) {
                __atomic_fetch_add(&stopped, 1, __ATOMIC_RELAXED);
                return NULL;
            }
            if (next == RECOVER_WAIT) {
                sched_yield();
                continue;
            }
            missing += next == RECOVER_GONE;
            if (next != RECOVER_GONE)
                s->state = model_after(s->state, r->applied, next, e.time, e.word[0]);
            __atomic_store_n(&progress[c], r->applied, __ATOMIC_RELAXED);
        }
    }
    __atomic_fetch_add(&recovered, r->recovered, __ATOMIC_RELAXED);
    __atomic_fetch_add(&gone, missing, __ATOMIC_RELAXED);
    return NULL;
}

static void freely(u64 seed)
{
    pthread_t thread[FREE_CORES];
    u64 lost = 0;

    for (u32 i = 0; i < 64; i++)
        lost |= (u64)(draw(100) < 15) << i;
    model_sequence(FREE_CORES, FREE_CORES, RECOVER_ROWS, MODEL_CARRIERS - 1, 0, lost, seed);
    model_reference();
    pair = (struct world *)aligned_alloc(64, mr_round_up(model_bytes(), 64));
    world_start(pair);
    memset(progress, 0, sizeof progress);
    for (u32 c = 0; c < FREE_CORES; c++)
        pthread_create(&thread[c], NULL, core, (void *)(uintptr_t)c);
    for (u32 c = 0; c < FREE_CORES; c++)
        pthread_join(thread[c], NULL);
    for (u32 c = 0; c < FREE_CORES; c++)
        CHECK(pair->core[c].applied == model.last && pair->side[c].state == model.reference[model.last]);
    free(pair);
}

int main(void)
{
    interleavings();
    for (u64 seed = 0; seed < 40; seed++)
        freely(seed);
    CHECK(recovered > 100 && gone > 0 && stopped == 0);
    return check_report();
}
