/* What loss recovery costs a replica at no loss: ns a packet of its own, for k cores, with k rows a packet, bursts of 32.
 * clang-19 -O3 -march=native bench_recover.c && ./a.out; -DHISTORY_ROW_BYTES=32u for wider rows. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef HISTORY_ROW_BYTES
#define HISTORY_ROW_BYTES 16u
#endif
#include "../sync/recover.h"

#define BURST 32u
#define TURNS 400u

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The state that rows are applied to: a sum, so that what is left is the rows' way. */
static u64 sum;

int main(void)
{
    static u8 bytes[BURST][2048];
    static double with[TURNS], without[TURNS];
    static struct gathered {
        u64 seq, word[HISTORY_WORDS];
    } gathered[BURST * 16];
    u32 rows;

    for (u32 k = 1; k <= 16; k *= 2) {
        /* As emitted code has it: literal but for the slots. */
        const struct carrier_shape s = { .slots = (u8)k, .row_bytes = HISTORY_ROW_BYTES - 1, .time = CARRIER_NO_TIME };
        struct recover_group *g = (struct recover_group *)aligned_alloc(64, recover_bytes(k, RECOVER_ROWS) + 4096);
        struct recover r = { .self = 0 };
        u64 seq = k;

        memset(g, 0, recover_bytes(k, RECOVER_ROWS));
        recover_create(g, k, RECOVER_ROWS);
        for (u32 turn = 0; turn < TURNS; turn++) {
            double start, read, done;

            for (u32 i = 0; i < BURST; i++, seq += k) {
                u8 *p = bytes[i];

                memset(p, 0, CARRIER_FIXED + 8);
                p[12] = 0x88, p[13] = 0xb5, p[14] = 0x11, p[15] = s.slots, p[16] = s.row_bytes, p[17] = (u8)(seq % k);
                mr_store64(p + 18, __builtin_bswap64(seq));
            }
            start = now();
            /* Without recovery: rows of 32 packets gathered in one place, then applied. */
            rows = 0;
            for (u32 i = 0; i < BURST; i++) {
                struct carrier c;

                if (carrier_read(&c, &s, bytes[i], 1600) != CARRIER_TAKEN)
                    return 1;
                for (u64 n = c.oldest; n <= c.seq; n++, rows++) {
                    history_words(gathered[rows].word, carrier_row(&c, &s, carrier_at(&c, &s, n)), s.row_bytes);
                    gathered[rows].seq = n;
                }
            }
            for (u32 i = 0; i < rows; i++)
                for (u32 w = 0; w < HISTORY_WORDS; w++)
                    sum += gathered[i].word[w] ^ gathered[i].seq;
            read = now();
            for (u32 i = 0; i < BURST; i++) {
                struct carrier c;

                if (carrier_read(&c, &s, bytes[i], 1600) != CARRIER_TAKEN || recover_put(g, &r, &s, &c) != RECOVER_TAKEN)
                    return 2;
            }
            recover_publish(g, &r);
            for (u32 run; (run = recover_run(g, &r, 32)); recover_applied(&r, run)) {
                for (u32 i = 1; i <= run; i++) {
                    const struct history_row *e = recover_entry(g, 0, r.applied + i);

                    for (u32 w = 0; w < HISTORY_WORDS; w++)
                        sum += e->word[w] ^ e->seq;
                }
            }
            if (r.applied != seq - k)
                return 3;
            done = now();
            without[turn] = (read - start) / BURST;
            with[turn] = (done - read) / BURST;
        }
        qsort(with, TURNS, sizeof *with, by_value);
        qsort(without, TURNS, sizeof *without, by_value);
        printf("k %2u, rows of %u bytes: %.1f ns a packet without, %.1f with recovery, %.1f more, %.2f a row\n", k, s.row_bytes,
               without[TURNS / 4], with[TURNS / 4], with[TURNS / 4] - without[TURNS / 4],
               (with[TURNS / 4] - without[TURNS / 4]) / k);
        free(g);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
