/* recover: loss recovery of state-compute replication (Xu et al., State-Compute Replication, section 3.4 and
 * algorithm 1 of appendix B), for carriers (carrier.h) that are lost between the sequencer and a core.
 *
 * Every row is applied by all cores of a group or by none. Each core writes the rows that its carriers held into a log of
 * its own, and `lost` for those that none of them held; a core that lost a row takes it from the log of another, and
 * leaves it out if all others lost it too. A log has one writer and is read without a lock.
 *
 *     recover_put       a carrier's rows into the core's log, unpublished
 *     recover_publish   the burst, by one store of `head`
 *     recover_run       rows that the core's own log has, in place
 *     recover_next      the next row in the order of numbers, wherever it is
 *
 * A core publishes all that it received before it waits for others. Then nobody waits for ever while each core goes on
 * receiving: of all numbers waited for take the least, i. The core whose head is below i waits for nothing, since its own
 * wait would be for a number that is not above its head; so it receives, and the sequencer's heartbeats are what it
 * receives when there is no traffic.
 *
 * Differs from the algorithm in the paper, which has logs without end:
 * - a row is overwritten `rows` numbers later. A row in the log has its number, as in history.h. A core that finds another number than the
 *   one it needs has been overrun: that row may have been applied by others, so the group stops, with the reason. It is not
 *   taken for lost.
 * - nothing gives up waiting. A core that stops stops its group, which ends all waits.
 * - a carrier that comes after a later one at the same core is late: its rows are logged as lost, others may have read so,
 *   and it is dropped and counted. Its packet has no output.
 *
 * Costs at no loss: a row is copied once into the core's log, which is in the core's own cache; 24 + HISTORY_ROW_BYTES
 * bytes a row, 1,024 rows a core.
 *
 * For tests: MR_POINT() is where a test may switch threads, HISTORY_FAULT(n) plants fault n.
 */
#ifndef MR_SYNC_RECOVER_H
#define MR_SYNC_RECOVER_H

#include "carrier.h"
#include "history.h"

/* The most cores of a group: one bit each in a word. */
#ifndef RECOVER_CORES
#define RECOVER_CORES 64u
#endif
#define RECOVER_ROWS 1024u

/* Faults that the model check of fastpath/tests/recover.c has to find (HISTORY_FAULT). */
#define RECOVER_FAULT_OVERWRITTEN 1 /* an overwritten row is taken for lost (the paper's public code) */
#define RECOVER_FAULT_GIVE_UP 2     /* a wait ends after some turns, as if the row were lost (the paper's public code) */
#define RECOVER_FAULT_UNPUBLISHED 3 /* a core waits with received rows that others cannot see */
#define RECOVER_FAULT_EARLY 4       /* head is moved before the rows are written */
#define RECOVER_FAULT_LATE 5        /* a late carrier fills rows that were logged as lost */
#define RECOVER_FAULT_FIRST 6       /* the first log that lost a row decides */
#define RECOVER_FAULT_FULL 8        /* a burst is put over rows that the core has still to apply */
#define RECOVER_FAULT_STOP 9        /* a core that stops keeps it to itself */

struct recover_log {
    u64 head __attribute__((aligned(64))); /* the last number that others may read, 0: none */
};

/* Why a group stopped. */
enum recover_reason {
    RECOVER_RUNS,
    RECOVER_OVERRUN, /* a core needed a row that another had overwritten: it is too far behind */
    RECOVER_BEHIND,  /* a carrier is more rows ahead of its core than a log holds */
    RECOVER_CONTRADICTED, /* a carrier holds another row under a number than an earlier one: forged, or two sequencers */
};

/* All that a group of cores shares, followed by their entries. */
struct recover_group {
    u32 cores;
    u32 rows; /* of a log, a power of two */
    u64 why __attribute__((aligned(64))); /* 0, or enum recover_reason | the core << 8; the first reason stays */
    u64 at;   /* the number at which that core stopped */
    struct recover_log log[RECOVER_CORES];
};

/* One core's own part. */
struct recover {
    u32 self;
    u32 turns;    /* of the present wait */
    u64 put;      /* the last number in its log, published or not */
    u64 applied;  /* the last number that recover_next gave */
    u64 others;   /* those that lost row applied + 1: bit of a core */
    u64 late;     /* carriers dropped */
    u64 lost;     /* rows that this core's carriers did not hold */
    u64 recovered; /* of these, taken from another core */
    u64 refused[CARRIER_REFUSALS]; /* what came and is no carrier, by reason */
};

enum recover_put { RECOVER_TAKEN, RECOVER_LATE, RECOVER_FULL, RECOVER_STOP };
enum recover_next { RECOVER_APPLY, RECOVER_TIME, RECOVER_GONE, RECOVER_WAIT, RECOVER_DONE, RECOVER_STOPPED };

MR_INLINE u64 recover_bytes(u32 cores, u32 rows)
{
    return sizeof(struct recover_group) + (u64)cores * rows * sizeof(struct history_row);
}

/* `rows` is a power of two; the memory is zero. */
MR_INLINE void recover_create(struct recover_group *g, u32 cores, u32 rows)
{
    g->cores = cores;
    g->rows = rows;
}

MR_INLINE struct history_row *recover_entry(struct recover_group *g, u32 core, u64 n)
{
    return (struct history_row *)(g + 1) + (u64)core * g->rows + (n & (g->rows - 1));
}

MR_OUTLINE void recover_stop(struct recover_group *g, struct recover *r, enum recover_reason reason, u64 n)
{
    u64 none = 0;

    if (HISTORY_FAULT(RECOVER_FAULT_STOP))
        return;
    if (__atomic_compare_exchange_n(&g->why, &none, reason | (u64)r->self << 8, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        __atomic_store_n(&g->at, n, __ATOMIC_RELEASE);
}

MR_INLINE int recover_stopped(const struct recover_group *g) { return __atomic_load_n(&g->why, __ATOMIC_RELAXED) != 0; }

/* ---- receiving ---- */

/* Reads a carrier, and counts what is none. */
MR_INLINE enum carrier_refusal recover_read(struct recover *r, struct carrier *c, const struct carrier_shape *s, const u8 *p,
                                            u64 bytes)
{
    enum carrier_refusal refusal = carrier_read(c, s, p, bytes);

    if (mr_unlikely(refusal != CARRIER_TAKEN))
        r->refused[refusal]++;
    return refusal;
}

/* Whether the newest row that the carrier shares with the core's log is the same in both, or, if it shares none, its oldest
 * row is of a moment at which it can follow. It says little about a single forged row (the tag is for that), but a second
 * sequencer, or one whose clock went back, does not get far. */
MR_INLINE int recover_agrees(struct recover_group *g, const struct recover *r, const struct carrier_shape *s,
                             const struct carrier *c)
{
    u64 n = r->put;
    u64 word[HISTORY_WORDS];
    u32 slot;
    const struct history_row *e;

    if (n == 0)
        return 1;
    e = recover_entry(g, r->self, n);
    if (e->kind == HISTORY_LOST)
        return 1;
    if (n < c->oldest) {
        u64 time = carrier_time(c, s, carrier_at(c, s, c->oldest));

        return time >= e->time && time - e->time <= (c->oldest - n) * CARRIER_GAP;
    }
    slot = carrier_at(c, s, n);
    history_words(word, carrier_row(c, s, slot), s->row_bytes);
    return !memcmp(word, e->word, sizeof word) && carrier_time(c, s, slot) == e->time &&
           (e->kind == HISTORY_BEAT) == carrier_beat(c, slot);
}

/* The rows of a carrier behind those in the log, and what is lost between them. */
MR_INLINE void recover_put_rows(struct recover_group *g, struct recover *r, const struct carrier_shape *s,
                                const struct carrier *c)
{
    struct history_row *log = recover_entry(g, r->self, 0);
    u64 n = r->put + 1, last = c->seq, mask = g->rows - 1;
    u32 slot;

    for (; n < c->oldest; n++, r->lost++)
        history_write(&log[n & mask], n, HISTORY_LOST, 0, NULL, 0);
    if (n > last)
        return;
    slot = carrier_at(c, s, n);
    for (; n <= last; n++) {
        history_write(&log[n & mask], n, carrier_beat(c, slot) ? HISTORY_BEAT : HISTORY_ROW, carrier_time(c, s, slot),
                      carrier_row(c, s, slot), s->row_bytes);
        slot = slot + 1 == s->slots ? 0 : slot + 1;
    }
    r->put = last;
}

/* Puts a carrier's rows into the core's log. TAKEN: its packet is processed after row c->seq. LATE: the packet is dropped.
 * FULL: publish and apply first, then come again. STOP: the group has stopped. row_bytes <= HISTORY_ROW_BYTES. */
MR_INLINE enum recover_put recover_put(struct recover_group *g, struct recover *r, const struct carrier_shape *s,
                                       const struct carrier *c)
{
    if (mr_unlikely(recover_stopped(g)))
        return RECOVER_STOP;
    /* A packet without a row may be behind the row that it follows, one with a row may not: it would be that row again. */
    if (mr_unlikely(c->seq < r->put || (c->seq == r->put && c->flags))) {
        r->late++;
        if (HISTORY_FAULT(RECOVER_FAULT_LATE))
            for (u64 n = c->oldest; n <= c->seq; n++)
                if (n > r->applied)
                    history_write(recover_entry(g, r->self, n), n, HISTORY_ROW, carrier_time(c, s, carrier_at(c, s, n)),
                                  carrier_row(c, s, carrier_at(c, s, n)), s->row_bytes);
        return RECOVER_LATE;
    }
    if (mr_unlikely(c->seq - r->applied > g->rows) && !HISTORY_FAULT(RECOVER_FAULT_FULL)) {
        if (r->put > r->applied)
            return RECOVER_FULL;
        recover_stop(g, r, RECOVER_BEHIND, c->seq);
        return RECOVER_STOP;
    }
    if (mr_unlikely(!recover_agrees(g, r, s, c))) {
        recover_stop(g, r, RECOVER_CONTRADICTED, r->put);
        return RECOVER_STOP;
    }
    if (HISTORY_FAULT(RECOVER_FAULT_EARLY))
        __atomic_store_n(&g->log[r->self].head, c->seq, __ATOMIC_RELEASE);
    recover_put_rows(g, r, s, c);
    return RECOVER_TAKEN;
}

/* Makes the burst visible. Always before recover_next. */
MR_INLINE void recover_publish(struct recover_group *g, struct recover *r)
{
    u64 head = HISTORY_FAULT(RECOVER_FAULT_UNPUBLISHED) ? r->applied : r->put;

    __atomic_store_n(&g->log[r->self].head, head, __ATOMIC_RELEASE);
}

/* ---- applying ---- */

MR_INLINE enum recover_next recover_given(struct recover *r, enum recover_next what)
{
    r->applied++;
    r->others = 0;
    r->turns = 0;
    return what;
}

MR_INLINE enum recover_next recover_kind_next(u64 kind) { return kind == HISTORY_BEAT ? RECOVER_TIME : RECOVER_APPLY; }

/* Whether all other cores have lost row applied + 1, as this one has. */
MR_INLINE int recover_gone(const struct recover_group *g, const struct recover *r)
{
    return (r->others | 1ull << r->self) == (~0ull >> (64 - g->cores));
}

/* Asks one other core for the row that this one lost. WAIT: it is to be asked again, or the next one. */
MR_INLINE enum recover_next recover_ask(struct recover_group *g, struct recover *r, u32 other, struct history_row *to)
{
    u64 n = r->applied + 1;
    int given_up = 0;

    if (__atomic_load_n(&g->log[other].head, __ATOMIC_ACQUIRE) < n) {
        if (!HISTORY_FAULT(RECOVER_FAULT_GIVE_UP) || ++r->turns < 2 * g->cores)
            return RECOVER_WAIT;
        given_up = 1;
    }
    if (given_up) {
        to->kind = HISTORY_LOST;
    } else if (!history_copy(recover_entry(g, other, n), n, to)) {
        if (!HISTORY_FAULT(RECOVER_FAULT_OVERWRITTEN)) {
            recover_stop(g, r, RECOVER_OVERRUN, n);
            return RECOVER_STOPPED;
        }
        to->kind = HISTORY_LOST;
    }
    if (to->kind != HISTORY_LOST) {
        r->recovered++;
        return recover_given(r, recover_kind_next(to->kind));
    }
    r->others |= 1ull << other;
    return recover_gone(g, r) || HISTORY_FAULT(RECOVER_FAULT_FIRST) ? recover_given(r, RECOVER_GONE) : RECOVER_WAIT;
}

/* The next row of the core's own log, if it has it; WAIT: it has been lost. Copied, as another carrier may take its place. */
MR_INLINE enum recover_next recover_own(struct recover_group *g, struct recover *r, struct history_row *to)
{
    if (r->applied == r->put)
        return RECOVER_DONE;
    *to = *recover_entry(g, r->self, r->applied + 1);
    if (to->kind == HISTORY_LOST)
        return RECOVER_WAIT;
    return recover_given(r, recover_kind_next(to->kind));
}

/* How many rows from applied + 1 on the core's own log has, up to a lost one or the end; at most `most`. They lie in
 * recover_entry(g, r->self, n) and stay there until the next recover_put, so that a burst of them can be applied in passes
 * without a copy; recover_applied says so afterwards. 0: recover_next decides. */
MR_INLINE u32 recover_run(struct recover_group *g, const struct recover *r, u32 most)
{
    u32 run = 0;

    while (run < most && r->applied + run < r->put &&
           recover_entry(g, r->self, r->applied + run + 1)->kind != HISTORY_LOST)
        run++;
    return run;
}

MR_INLINE void recover_applied(struct recover *r, u32 run)
{
    r->applied += run;
    r->others = 0;
    r->turns = 0;
}

/* The next row of what was published: APPLY a row, TIME a heartbeat's, of which only the time counts, GONE: no core of
 * the group has the row. WAIT: call again, nothing has changed. DONE: all is applied. STOPPED: the group has stopped
 * (g->why), and so has this core; its packets not processed yet are dropped. */
MR_INLINE enum recover_next recover_next(struct recover_group *g, struct recover *r, struct history_row *to)
{
    enum recover_next next = recover_own(g, r, to);

    if (mr_likely(next != RECOVER_WAIT))
        return next;
    if (recover_gone(g, r))
        return recover_given(r, RECOVER_GONE); /* of one core */
    for (u32 other = 0; other < g->cores; other++) {
        if (other == r->self || r->others >> other & 1)
            continue;
        next = recover_ask(g, r, other, to);
        if (next != RECOVER_WAIT)
            return next;
    }
    return recover_stopped(g) ? RECOVER_STOPPED : RECOVER_WAIT;
}

#endif
