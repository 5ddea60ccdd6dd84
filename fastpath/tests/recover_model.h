/* A model check of sync/recover.h: the functions themselves, run in all orders.
 *
 * A world is everything that a step can change: the group with its logs, each core's own part, and how far its driver is.
 * A step is one function of recover.h by one core, at most one of whose accesses meets those of others: a burst into the log
 * (with a log so short that rows are overwritten, a carrier), publishing, asking one other core. What a core does by itself
 * alone goes with the step before. Steps within a copy of an entry are the matter of recover_threads.c.
 *
 * Worlds are visited depth first, each once (Clarke, Grumberg, Peled: Model Checking, 1999, chapter 9; a world is known by 64 bits of
 * hash, so that of a million one is missed with a probability of 3e-8).
 */
#ifndef MR_RECOVER_MODEL_H
#define MR_RECOVER_MODEL_H

static int model_fault;
#define HISTORY_FAULT(n) (model_fault == (n))
#define RECOVER_CORES 8u
#ifndef HISTORY_ROW_BYTES
#define HISTORY_ROW_BYTES 8u
#endif
#include "../sync/recover.h"
#include "check.h"

#define MODEL_CARRIERS 512u
#define MODEL_ROW 7u
#define MODEL_LOG 16u

/* What comes, and in which order at each core. */
struct scenario {
    struct carrier_shape shape;
    u32 cores, rows, carriers;
    int every_carrier; /* a step puts one carrier, not a burst */
    struct carrier carrier[MODEL_CARRIERS];
    u8 *bytes;
    u32 count[RECOVER_CORES];
    u16 list[RECOVER_CORES][MODEL_CARRIERS]; /* indexes of carriers */
    u64 reference[MODEL_CARRIERS + 1];       /* the state after each row, of one core that saw all that any core saw */
    u64 last;
};

enum phase { RECEIVE, PUT, PUBLISH, APPLY, DONE, STOPPED };

struct side {
    u32 phase;
    u32 next, end; /* of its list: the carrier to put, and behind the burst */
    u32 out;       /* the carrier whose packet is processed next */
    u64 dropped;   /* bit: index in the list, modulo 64 */
    u64 state;
};

/* `more` entries of logs follow. */
struct world {
    struct side side[RECOVER_CORES];
    struct recover core[RECOVER_CORES];
    struct recover_group group;
};

enum violation { NO_VIOLATION, DIVERGED, DEADLOCK, NEEDLESS_STOP, SILENT_STOP };

static struct scenario model;
static enum violation model_violation;
static u64 model_worlds, model_scenarios, model_stops;

static u64 model_bytes(void) { return sizeof(struct world) + (u64)model.cores * model.rows * sizeof(struct history_row); }

static u64 model_row(u64 n, u64 seed) { return mr_random(seed, n) >> (64 - 8 * MODEL_ROW + 8); }

static u64 model_after(u64 state, u64 n, u64 kind, u64 time, u64 word)
{
    return mr_fold(state ^ n * 0x9e3779b97f4a7c15ull ^ kind, (word ^ time << 20) | 1) + n;
}

/* ---- carriers ---- */

/* The bytes of a carrier with its packet, as a sequencer writes them; `row` has the words of all rows, `beat` what is one. */
static u64 model_emit(u8 *p, const struct carrier_shape *s, u64 seq, u32 flags, u64 stamp, const u64 *word, const u8 *beat,
                      const u64 *time)
{
    u64 whole = carrier_bytes(s);
    u64 oldest = seq < s->slots ? 1 : seq - s->slots + 1;
    u8 *slots = p + whole - (s->keyed ? 8 : 0) - (u64)s->slots * s->row_bytes;

    memset(p, 0, whole);
    p[12] = CARRIER_TYPE >> 8;
    p[13] = CARRIER_TYPE & 255;
    p[14] = (u8)(CARRIER_VERSION << 4 | flags);
    p[15] = s->slots;
    p[16] = s->row_bytes;
    p[17] = (u8)(seq % s->slots);
    mr_store64(p + 18, __builtin_bswap64(seq));
    mr_store64(p + 26, __builtin_bswap64(stamp));
    for (u64 n = oldest; n <= seq; n++) {
        u32 slot = carrier_slot(s, n);
        u8 *row = slots + slot * s->row_bytes;

        p[CARRIER_FIXED + slot / 8] |= (u8)((beat[n] != 0) << slot % 8);
        if (!beat[n])
            memcpy(row, &word[n], s->row_bytes);
        if (s->time != CARRIER_NO_TIME)
            for (u32 i = 0; i < CARRIER_TIME_BYTES; i++)
                row[s->time + i] = (u8)(time[n] >> (32 - 8 * i));
    }
    if (s->keyed)
        mr_store64(p + whole - 8, carrier_tag(s->key, p, whole - 8));
    if (flags == CARRIER_BEAT)
        return whole;
    p[whole] = 0xcc;
    return whole + 1;
}

/* `packets` packets to `cores` cores in turn, those of `plain` without a row; `lost` of them lost between sequencer and core;
 * then a heartbeat to each core, which arrives. */
MR_OUTLINE void model_sequence(u32 cores, u32 slots, u32 rows, u32 packets, u64 plain, u64 lost, u64 seed)
{
    static u64 word[MODEL_CARRIERS + 1], time[MODEL_CARRIERS + 1];
    static u8 beat[MODEL_CARRIERS + 1];
    u64 seq = 0, stamp = 1000, whole;

    model.shape = (struct carrier_shape){ .slots = (u8)slots, .row_bytes = MODEL_ROW, .time = 2 };
    model.cores = cores;
    model.rows = rows;
    model.every_carrier = rows < packets;
    model.carriers = packets + 1;
    whole = carrier_bytes(&model.shape) + 1;
    free(model.bytes);
    model.bytes = (u8 *)malloc(whole * model.carriers);
    memset(model.count, 0, sizeof model.count);
    for (u32 i = 0; i <= packets; i++) {
        u32 flags = i == packets ? CARRIER_BEAT : plain >> i % 64 & 1 ? 0 : CARRIER_TOUCH;
        u64 bytes;

        stamp += mr_random(seed, i) % 1000;
        if (flags) {
            seq++;
            beat[seq] = flags == CARRIER_BEAT;
            word[seq] = model_row(seq, seed);
            time[seq] = stamp;
        }
        bytes = model_emit(model.bytes + i * whole, &model.shape, seq, flags, stamp, word, beat, time);
        CHECK(carrier_read(&model.carrier[i], &model.shape, model.bytes + i * whole, bytes) == CARRIER_TAKEN);
        for (u32 c = 0; c < cores; c++)
            if (i == packets || (i % cores == c && !(lost >> i % 64 & 1)))
                model.list[c][model.count[c]++] = (u16)i;
    }
    model.last = seq;
}

/* One core's state after each row of all that reached any core; late carriers reach none. */
MR_OUTLINE void model_reference(void)
{
    static u8 seen[MODEL_CARRIERS + 1];
    static u64 time[MODEL_CARRIERS + 1], word[MODEL_CARRIERS + 1], kind[MODEL_CARRIERS + 1];

    memset(seen, 0, sizeof seen);
    for (u32 c = 0; c < model.cores; c++) {
        u64 head = 0;

        for (u32 i = 0; i < model.count[c]; i++) {
            const struct carrier *a = &model.carrier[model.list[c][i]];

            for (u64 n = a->oldest; n <= a->seq; n++) {
                u32 slot = carrier_slot(&model.shape, n);

                if (n <= head)
                    continue;
                seen[n] = 1;
                time[n] = a->time[slot];
                kind[n] = a->beats >> slot & 1 ? RECOVER_TIME : RECOVER_APPLY;
                word[n] = 0;
                memcpy(&word[n], a->slot + slot * MODEL_ROW, MODEL_ROW);
            }
            if (a->seq > head)
                head = a->seq;
        }
    }
    model.reference[0] = 1;
    for (u64 n = 1; n <= model.last; n++)
        model.reference[n] =
            seen[n] ? model_after(model.reference[n - 1], n, kind[n], time[n], word[n]) : model.reference[n - 1];
}

MR_OUTLINE void world_start(struct world *w)
{
    memset(w, 0, model_bytes());
    recover_create(&w->group, model.cores, model.rows);
    for (u32 c = 0; c < model.cores; c++) {
        w->core[c].self = c;
        w->side[c].state = 1;
    }
}

/* ---- steps ---- */

static const struct carrier *of(u32 c, u32 at) { return &model.carrier[model.list[c][at]]; }

/* Packets whose number has come are processed: their output is a function of the state. */
static void process(struct world *w, u32 c)
{
    struct side *s = &w->side[c];

    while (s->out < s->next && (s->dropped >> s->out % 64 & 1 || of(c, s->out)->seq <= w->core[c].applied)) {
        if (!(s->dropped >> s->out % 64 & 1) &&
            (of(c, s->out)->seq != w->core[c].applied || s->state != model.reference[of(c, s->out)->seq]))
            model_violation = DIVERGED;
        s->dropped &= ~(1ull << s->out % 64);
        s->out++;
    }
}

static void given(struct world *w, u32 c, enum recover_next what, const struct history_row *e)
{
    struct side *s = &w->side[c];

    if (what == RECOVER_APPLY || what == RECOVER_TIME)
        s->state = model_after(s->state, w->core[c].applied, what, e->time, e->word[0]);
    process(w, c);
}

static void put(struct world *w, u32 c)
{
    struct side *s = &w->side[c];

    do {
        switch (recover_put(&w->group, &w->core[c], &model.shape, of(c, s->next))) {
        case RECOVER_LATE:
            s->dropped |= 1ull << s->next % 64;
            /* fallthrough */
        case RECOVER_TAKEN:
            s->next++;
            break;
        case RECOVER_FULL:
            s->end = s->next;
            break;
        case RECOVER_STOP:
            s->phase = STOPPED;
            return;
        }
    } while (s->next < s->end && !model.every_carrier);
    s->phase = s->next < s->end ? PUT : PUBLISH;
}

/* What a core does with what it received, until it has to ask another. */
static int alone(struct world *w, u32 c)
{
    struct history_row e;
    enum recover_next next;

    process(w, c);
    while ((next = recover_own(&w->group, &w->core[c], &e)) != RECOVER_WAIT) {
        if (next == RECOVER_DONE) {
            w->side[c].phase = w->side[c].next == model.count[c] ? DONE : RECEIVE;
            return 0;
        }
        given(w, c, next, &e);
    }
    return 1;
}

#define CHOICES (RECOVER_CORES)

/* Core `c` takes one step; 0: there is no such choice for it now. */
MR_OUTLINE int step(struct world *w, u32 c, u32 choice)
{
    struct side *s = &w->side[c];
    struct history_row e;
    enum recover_next next;

    switch (s->phase) {
    case RECEIVE:
        /* A burst of one, of two, of all that comes, at most 32. */
        if (choice > 2 || s->next + choice >= model.count[c])
            return 0;
        s->end = s->next + (choice == 2 ? 32 : choice + 1);
        if (s->end > model.count[c])
            s->end = model.count[c];
        put(w, c);
        return 1;
    case PUT:
        if (choice == 0)
            put(w, c);
        return choice == 0;
    case PUBLISH:
        if (choice)
            return 0;
        recover_publish(&w->group, &w->core[c]);
        s->phase = APPLY;
        alone(w, c);
        return 1;
    case APPLY:
        if (choice >= model.cores || choice == c || w->core[c].others >> choice & 1)
            return 0;
        next = recover_ask(&w->group, &w->core[c], choice, &e);
        if (next == RECOVER_STOPPED || (next == RECOVER_WAIT && recover_stopped(&w->group))) {
            s->phase = STOPPED;
        } else if (next != RECOVER_WAIT) {
            given(w, c, next, &e);
            alone(w, c);
        }
        return 1;
    default:
        return 0;
    }
}

static int over(const struct world *w)
{
    for (u32 c = 0; c < model.cores; c++)
        if (w->side[c].phase < DONE)
            return 0;
    return 1;
}

/* Of a world in which nothing happens any more. */
MR_OUTLINE void judge(const struct world *w)
{
    if (!over(w)) {
        model_violation = DEADLOCK;
        return;
    }
    if (recover_stopped(&w->group)) {
        model_stops++;
        if (!model.every_carrier)
            model_violation = NEEDLESS_STOP;
        return;
    }
    for (u32 c = 0; c < model.cores; c++)
        if (w->side[c].phase == STOPPED) {
            model_violation = SILENT_STOP;
            return;
        }
    for (u32 c = 0; c < model.cores; c++)
        if (w->side[c].phase != DONE || w->core[c].applied != model.last || w->side[c].state != model.reference[model.last])
            model_violation = DIVERGED;
}

/* ---- all worlds ---- */

#define SEEN (1ull << 21)

static u64 *seen_table, seen_used;

/* Whether it is new. */
static int seen_add(u64 hash)
{
    if (seen_used > SEEN / 2) {
        memset(seen_table, 0, SEEN * sizeof(u64));
        seen_used = 0;
    }
    hash += !hash;
    for (u64 at = hash % SEEN;; at = (at + 1) % SEEN) {
        if (seen_table[at] == hash)
            return 0;
        if (!seen_table[at]) {
            seen_table[at] = hash;
            seen_used++;
            return 1;
        }
    }
}

static u64 world_hash(const struct world *w)
{
    const u64 *word = (const u64 *)w;
    u64 a = model_scenarios * 0x9e3779b97f4a7c15ull, b = 1;

    for (u64 i = 0; i + 1 < model_bytes() / 8; i += 2) {
        a = (a ^ word[i]) * 0xbf58476d1ce4e5b9ull;
        b = (b ^ word[i + 1]) * 0x94d049bb133111ebull;
        a ^= a >> 29;
        b ^= b >> 31;
    }
    return mr_fold(a ^ b >> 7, b | 1) ^ a;
}

#define DEPTH 1024u

/* Visits all worlds of the scenario, until one violates a property. */
MR_OUTLINE void explore(void)
{
    static u8 *stack;
    static u64 stack_bytes;
    u16 tried[DEPTH] = { 0 };
    u8 moved[DEPTH] = { 0 };
    u64 bytes = model_bytes(), hash[DEPTH];
    u32 depth = 0;

    if (!seen_table)
        seen_table = (u64 *)calloc(SEEN, sizeof(u64));
    if (stack_bytes < bytes * (DEPTH + 1)) {
        free(stack);
        stack_bytes = bytes * (DEPTH + 1);
        stack = (u8 *)aligned_alloc(64, mr_round_up(stack_bytes, 64));
    }
    model_scenarios++;
    model_violation = NO_VIOLATION;
    model_reference();
    world_start((struct world *)stack);
    hash[0] = world_hash((struct world *)stack);
    seen_add(hash[0]);
    model_worlds++;
    for (;;) {
        struct world *w = (struct world *)(stack + depth * bytes), *next = (struct world *)(stack + (depth + 1) * bytes);
        u32 c = tried[depth] / CHOICES, choice = tried[depth] % CHOICES;
        u64 after;

        if (c == model.cores) {
            if (!moved[depth])
                judge(w);
            if (!depth-- || model_violation)
                return;
            continue;
        }
        tried[depth]++;
        /* The copy is of a few hundred bytes to two kilobytes: choices that do not exist are met before it. */
        if (w->side[c].phase >= DONE)
            continue;
        memcpy(next, w, bytes);
        if (!step(next, c, choice))
            continue;
        after = world_hash(next);
        if (after == hash[depth])
            continue; /* it waits */
        moved[depth] = 1;
        if (model_violation)
            return;
        if (!seen_add(after))
            continue;
        model_worlds++;
        depth++;
        CHECK(depth < DEPTH - 1);
        hash[depth] = after;
        tried[depth] = 0;
        moved[depth] = 0;
    }
}

/* One order of steps, drawn. */
MR_OUTLINE void wander(u64 seed)
{
    static struct world *w;
    static u64 have;
    u64 bytes = model_bytes(), still = 0, n = 0;

    if (have < bytes) {
        free(w);
        have = bytes;
        w = (struct world *)aligned_alloc(64, mr_round_up(bytes, 64));
    }
    model_scenarios++;
    model_violation = NO_VIOLATION;
    model_reference();
    world_start(w);
    /* A core is chosen for a while, so that others stall; every core is chosen again and again. */
    while (!over(w) && !model_violation && still < 4000) {
        u64 r = mr_random(seed, n++);
        u32 c = (u32)(r % model.cores), times = (u32)(r >> 32) % 24;

        for (u32 i = 0; i < times; i++) {
            u32 phase = w->side[c].phase, put_before = w->side[c].next;
            u64 applied = w->core[c].applied, others = w->core[c].others;

            step(w, c, (u32)(mr_random(seed, n++) % CHOICES));
            model_worlds++;
            if (phase == w->side[c].phase && put_before == w->side[c].next && applied == w->core[c].applied &&
                others == w->core[c].others)
                still++;
            else
                still = 0;
        }
    }
    if (!model_violation)
        judge(w);
}

#endif
