/* history, the ring: threads that read what one writes, at their own pace; a replica that stalls; descriptors that lie. */
#include <pthread.h>
#include <sched.h>

#define HISTORY_ROW_BYTES 16u
#include "../sync/history.h"
#include "check.h"

#define REPLICAS 3u
#define PLACES 64u
#define ROWS 20000u
#define ROW 13u

static u8 memory[sizeof(struct history) + PLACES * sizeof(struct history_row)] __attribute__((aligned(64)));
static struct history *const ring = (struct history *)memory;
static u64 paced, overruns, given[REPLICAS], progress[REPLICAS], bad;

static void row_of(u64 n, u8 *row)
{
    mr_store64(row, mr_random(1, n));
    mr_store32(row + 8, (u32)n);
    row[12] = 9;
}

static void put(u64 n)
{
    u8 row[ROW];

    row_of(n, row);
    history_put(ring, n, n % 9 ? HISTORY_ROW : HISTORY_BEAT, n * 10, n % 9 ? row : NULL, ROW);
}

static int right(const struct history_row *e, u64 n)
{
    u8 row[HISTORY_ROW_BYTES] = { 0 };

    if (n % 9)
        row_of(n, row);
    return e->seq == n && e->time == n * 10 && e->kind == (n % 9 ? HISTORY_ROW : HISTORY_BEAT) && !memcmp(e->word, row, sizeof row);
}

static void *sequencer(void *unused)
{
    (void)unused;
    for (u64 n = 1; n <= ROWS; n++) {
        if (paced)
            for (u32 i = 0; i < REPLICAS; i++)
                while (__atomic_load_n(&progress[i], __ATOMIC_RELAXED) + PLACES < n)
                    sched_yield();
        put(n);
        if (n % 8 == 0)
            history_publish(ring, n);
    }
    return NULL;
}

/* The same by bursts of rows side by side, in memory of exactly the size that is asked for. */
static void *bursts(void *which)
{
    u32 self = (u32)(uintptr_t)which;
    u64 applied = 0, before, time;
    struct history_row e;

    while (applied < ROWS) {
        u64 upto = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
        u32 most = 1 + (u32)(applied % 13), n;
        u8 *rows = (u8 *)malloc(most * ROW + 8);
        enum history_next next = HISTORY_GIVEN;

        before = applied;
        n = history_take(ring, &applied, upto, most, rows, ROW, &time);
        if (n > most || applied != before + n || applied > upto)
            __atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED);
        for (u32 i = 0; i < n; i++) {
            u8 row[ROW];

            row_of(before + i + 1, row);
            if (memcmp(rows + i * ROW, row, ROW) || (before + i + 1) % 9 == 0)
                __atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED);
        }
        if (n && time != applied * 10)
            __atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED);
        if (n == 0)
            next = history_next(ring, &applied, upto, &e);
        if (n == 0 && next == HISTORY_GIVEN && !right(&e, applied))
            __atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED);
        free(rows);
        __atomic_store_n(&progress[self], applied, __ATOMIC_RELAXED);
        if (next == HISTORY_OVERRUN) {
            __atomic_fetch_add(&overruns, 1, __ATOMIC_RELAXED);
            break;
        }
        sched_yield();
    }
    given[self] = applied;
    return NULL;
}

static void *replica(void *which)
{
    u32 self = (u32)(uintptr_t)which;
    u64 applied = 0;
    struct history_row e;

    while (applied < ROWS) {
        /* A descriptor of the newest row that can be seen. */
        u64 upto = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
        enum history_next next;

        while ((next = history_next(ring, &applied, upto, &e)) == HISTORY_GIVEN)
            if (!right(&e, applied))
                __atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&progress[self], applied, __ATOMIC_RELAXED);
        if (next == HISTORY_OVERRUN) {
            __atomic_fetch_add(&overruns, 1, __ATOMIC_RELAXED);
            break;
        }
        sched_yield();
    }
    given[self] = applied;
    return NULL;
}

static void freely(u64 pace)
{
    pthread_t writer, reader[REPLICAS];

    memset(memory, 0, sizeof memory);
    memset(progress, 0, sizeof progress);
    history_create(ring, PLACES);
    paced = pace;
    overruns = 0;
    for (u32 i = 0; i < REPLICAS; i++)
        pthread_create(&reader[i], NULL, i ? replica : bursts, (void *)(uintptr_t)i);
    pthread_create(&writer, NULL, sequencer, NULL);
    pthread_join(writer, NULL);
    for (u32 i = 0; i < REPLICAS; i++)
        pthread_join(reader[i], NULL);
    CHECK(bad == 0);
    for (u32 i = 0; i < REPLICAS; i++)
        CHECK(given[i] == ROWS || (!pace && overruns));
    CHECK(!pace || !overruns);
}

static void stalled(void)
{
    u64 applied = 0, time = 0;
    u8 taken[9 * ROW + 8];
    struct history_row e;

    memset(memory, 0, sizeof memory);
    history_create(ring, PLACES);
    CHECK(history_next(ring, &applied, 0, &e) == HISTORY_DONE);
    CHECK(history_next(ring, &applied, 1, &e) == HISTORY_AHEAD);
    for (u64 n = 1; n <= PLACES; n++)
        put(n);
    /* What is in it but not shown is not there. */
    CHECK(history_next(ring, &applied, 1, &e) == HISTORY_AHEAD);
    history_publish(ring, PLACES);
    CHECK(history_next(ring, &applied, ~0ull, &e) == HISTORY_AHEAD);
    CHECK(history_next(ring, &applied, 2, &e) == HISTORY_GIVEN && right(&e, 1));
    CHECK(history_next(ring, &applied, 2, &e) == HISTORY_GIVEN && right(&e, 2));
    CHECK(history_next(ring, &applied, 2, &e) == HISTORY_DONE && applied == 2);
    /* The newest row takes the place of the first, which has been applied; the next takes that of row 2; then that of row 3. */
    for (u64 n = PLACES + 1; n <= PLACES + 3; n++) {
        put(n);
        history_publish(ring, n);
        CHECK(applied == 2);
    }
    CHECK(history_next(ring, &applied, PLACES + 3, &e) == HISTORY_OVERRUN && applied == 2);
    CHECK(history_take(ring, &applied, PLACES + 3, 4, taken, ROW, &time) == 0 && applied == 2);
    applied = 3;
    /* Up to the heartbeat, which is row 9. */
    CHECK(history_take(ring, &applied, PLACES + 4, 9, taken, ROW, &time) == 0 && applied == 3);
    CHECK(history_take(ring, &applied, PLACES + 3, 9, taken, ROW, &time) == 5 && applied == 8 && time == 80);
    CHECK(history_take(ring, &applied, PLACES + 3, 9, taken, ROW, &time) == 0 && applied == 8);
    CHECK(history_next(ring, &applied, PLACES + 3, &e) == HISTORY_GIVEN && e.kind == HISTORY_BEAT);
    CHECK(history_take(ring, &applied, 11, 9, taken, ROW, &time) == 2 && applied == 11);
}

/* Rows of every size, which end where memory ends. */
static void words(void)
{
    for (u32 bytes = 1; bytes <= HISTORY_ROW_BYTES; bytes++) {
        u8 *row = (u8 *)malloc(bytes), padded[HISTORY_ROW_BYTES] = { 0 };
        u64 word[HISTORY_WORDS];

        for (u32 i = 0; i < bytes; i++)
            padded[i] = row[i] = (u8)(draw(255) + 1);
        history_words(word, row, bytes);
        CHECK(!memcmp(word, padded, sizeof padded));
        free(row);
    }
}

int main(void)
{
    words();
    stalled();
    freely(1);
    freely(0);
    return check_report();
}
