/* recover: all orders of two to four cores with all patterns of up to four losses, drawn ones beyond, and planted faults.
 * RECOVER_SECONDS=600 looks at larger ones for so long. */
#include <time.h>

#include "recover_model.h"

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Patterns of up to `most` losses among `packets` packets; the first violation ends it. */
static enum violation patterns(u32 cores, u32 slots, u32 rows, u32 packets, u64 plain, u32 most)
{
    for (u64 lost = 0; lost < 1ull << packets; lost++) {
        if ((u32)__builtin_popcountll(lost) > most)
            continue;
        model_sequence(cores, slots, rows, packets, plain, lost, 7);
        explore();
        if (model_violation)
            return model_violation;
    }
    return NO_VIOLATION;
}

/* The same, and one carrier of one core comes after the next one, or twice. */
static enum violation disordered(u32 cores, u32 slots, u32 packets, u64 plain, u32 most)
{
    for (u64 lost = 0; lost < 1ull << packets; lost++) {
        if ((u32)__builtin_popcountll(lost) > most)
            continue;
        for (u32 c = 0; c < cores; c++) {
            for (u32 twice = 0; twice < 2; twice++) {
                for (u32 at = 0;; at++) {
                    u16 *list = model.list[c];

                    model_sequence(cores, slots, MODEL_LOG, packets, plain, lost, 7);
                    if (at + 1 >= model.count[c])
                        break;
                    if (twice) {
                        memmove(list + at + 1, list + at, (model.count[c] - at) * sizeof *list);
                        model.count[c]++;
                    } else {
                        u16 first = list[at];

                        list[at] = list[at + 1];
                        list[at + 1] = first;
                    }
                    explore();
                    if (model_violation)
                        return model_violation;
                }
            }
        }
    }
    return NO_VIOLATION;
}

/* Larger groups, with losses, disorder and stalls as they are drawn. */
static enum violation drawn(u64 seed, u32 rows)
{
    u32 cores = 2 + (u32)draw(RECOVER_CORES - 1);
    u32 slots = cores + (u32)draw(cores + 1), packets = 60 + (u32)draw(200);
    u64 chance = 1 + draw(40), lost = 0;

    for (u32 i = 0; i < 64; i++)
        lost |= (u64)(draw(100) < chance) << i;
    model_sequence(cores, slots, rows, packets, draw(2) ? 0 : mr_random(seed, 9), lost, seed);
    for (u32 c = 0; c < cores; c++)
        for (u32 i = 0; i + 1 < model.count[c]; i++)
            if (draw(50) == 0) {
                u16 first = model.list[c][i];

                model.list[c][i] = model.list[c][i + 1];
                model.list[c][i + 1] = first;
            }
    wander(seed);
    return model_violation;
}

/* The heartbeat that each core gets at the end is what ends waits: without it, a loss at the end is waited for. */
static void heartbeats(void)
{
    model_sequence(2, 2, MODEL_LOG, 6, 0, 1u << 4, 7);
    explore();
    CHECK(model_violation == NO_VIOLATION);
    /* Packet 5 is core 1's and holds rows 5 and 6; of core 0 nothing comes after packet 3. */
    model_sequence(2, 2, MODEL_LOG, 6, 0, 1u << 2 | 1u << 3, 7);
    for (u32 c = 0; c < 2; c++)
        model.count[c]--;
    model.count[0]--;
    explore();
    CHECK(model_violation == DEADLOCK);
}

static enum violation with_fault(int fault, enum violation (*check)(void))
{
    enum violation found;

    model_fault = fault;
    found = check();
    model_fault = 0;
    return found;
}

static enum violation two(void) { return patterns(2, 2, MODEL_LOG, 8, 0, 4); }
static enum violation three(void) { return patterns(3, 3, MODEL_LOG, 7, 0, 4); }
static enum violation short_log(void) { return patterns(2, 2, 4, 8, 0, 3); }
static enum violation mixed(void) { return disordered(2, 2, 6, 1u << 2 | 1u << 5, 2); }

static void said(const char *what)
{
    printf("%s: %llu scenarios, %llu worlds, %llu stops, %.2f s\n", what, (unsigned long long)model_scenarios,
           (unsigned long long)model_worlds, (unsigned long long)model_stops, seconds());
}

int main(void)
{
    const char *longer = getenv("RECOVER_SECONDS");
    u64 stops;

    CHECK(two() == NO_VIOLATION);
    CHECK(three() == NO_VIOLATION);
    /* Twice the rows heal one loss without asking. */
    CHECK(patterns(2, 4, MODEL_LOG, 8, 0, 4) == NO_VIOLATION);
    CHECK(patterns(3, 6, MODEL_LOG, 8, 0, 4) == NO_VIOLATION);
    CHECK(mixed() == NO_VIOLATION);
    CHECK(disordered(3, 3, 6, 1u << 2 | 1u << 5, 1) == NO_VIOLATION);
    CHECK(model_stops == 0);
    CHECK(short_log() == NO_VIOLATION);
    CHECK(patterns(3, 3, 4, 7, 0, 3) == NO_VIOLATION);
    CHECK(model_stops > 0);
    heartbeats();
    said("all orders");

    /* A check that finds nothing wrong with these would find nothing. */
    CHECK(with_fault(RECOVER_FAULT_OVERWRITTEN, short_log) == DIVERGED);
    CHECK(with_fault(RECOVER_FAULT_GIVE_UP, two) == DIVERGED);
    CHECK(with_fault(RECOVER_FAULT_UNPUBLISHED, two) == DEADLOCK);
    CHECK(with_fault(RECOVER_FAULT_LATE, mixed) == DIVERGED);
    CHECK(with_fault(RECOVER_FAULT_FIRST, three) == DIVERGED);
    CHECK(with_fault(RECOVER_FAULT_FULL, short_log) == DIVERGED);
    CHECK(with_fault(RECOVER_FAULT_STOP, short_log) == SILENT_STOP);

    stops = model_stops;
    for (u32 i = 0; i < 300; i++)
        CHECK(drawn(i, 512) == NO_VIOLATION);
    CHECK(model_stops == stops);
    for (u32 i = 0; i < 300; i++)
        CHECK(drawn(1000 + i, 16) == NO_VIOLATION);
    CHECK(model_stops > stops);

    said("with drawn ones");

    for (u64 i = 0; longer && seconds() < atof(longer); i++) {
        CHECK(patterns(3, 3 + (u32)(i % 4), MODEL_LOG, 9, i ? draw(512) : 0, 4) == NO_VIOLATION);
        CHECK(patterns(4, 4 + (u32)(i % 5), MODEL_LOG, 7, i ? draw(128) : 0, 4) == NO_VIOLATION);
        CHECK(disordered(3, 3 + (u32)(i % 4), 7, draw(128), 3) == NO_VIOLATION);
        CHECK(patterns(3, 3, 4, 9, i ? draw(512) : 0, 4) == NO_VIOLATION);
        for (u32 k = 0; k < 2000; k++)
            CHECK(drawn(5000 + i * 2000 + k, k % 2 ? 512 : 16) == NO_VIOLATION);
        said("longer");
    }
    return check_report();
}
