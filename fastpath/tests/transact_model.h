/* transact_model: what packets may do to a map, one after the other, for tests/transact.c: all serial orders of a scenario,
 * and of each what every packet finds and what is there in the end.
 *
 * An expired entry goes at an event of its own (state/transact_map.h): before each packet, at that packet's time, any
 * set of the entries that are over then may go. */
#ifndef MR_TRANSACT_MODEL_H
#define MR_TRANSACT_MODEL_H

#include "check.h"

#define MODEL_KEYS 16u
#define MODEL_CORES 3u
#define MODEL_PACKETS 3u
#define MODEL_OPS 4u
#define MODEL_OUTCOMES 4096u

enum model_op {
    NO_OP,
    GET,     /* what is there */
    REFRESH, /* the same, and its stamp is the packet's time */
    ADD,     /* adds `value` to what is there */
    PUT,
    DEL,
    COUNT,   /* adds `value`, or puts it where nothing is */
    MOVE,    /* stores what `key` has under `other`, if both are there */
    UNLESS,  /* puts under `other` if `key` is not there */
    AGE,     /* the core looks for what has expired, between packets */
};

struct model_step {
    u8 op, key, other;
    u8 value;
};

struct model_packet {
    u64 time;
    struct model_step step[MODEL_OPS];
};

struct model_scenario {
    const char *name;
    u64 capacity, expire_after;
    u32 cores, timed, numbered; /* numbers that are leased, for which keys stand: of each key one PUT */
    struct model_packet before[16]; /* on core `before_core`, alone */
    u8 before_core[16];
    struct model_packet packet[MODEL_CORES][MODEL_PACKETS];
    u64 end; /* time at which the content is compared */
};

/* What an operation found, for the outcome. */
#define MODEL_ABSENT 99u
#define MODEL_REFUSED 98u

struct model_state {
    u8 there[MODEL_KEYS], value[MODEL_KEYS];
    u64 stamp[MODEL_KEYS];
};

static u64 model_outcome[MODEL_OUTCOMES];
static u32 model_outcomes;

static u64 model_mix(u64 h, u64 n) { return mr_fold(h ^ (n + 1) * 0x9e3779b97f4a7c15ull, 0xbf58476d1ce4e5b9ull | 1); }

static int model_over(const struct model_scenario *m, const struct model_state *s, u32 key, u64 now)
{
    return s->there[key] && m->expire_after && now >= s->stamp[key] && now - s->stamp[key] >= m->expire_after;
}

static int model_there(const struct model_scenario *m, struct model_state *s, u32 key, u64 now)
{
    if (model_over(m, s, key, now))
        s->there[key] = 0;
    return s->there[key];
}

static u64 model_put(const struct model_scenario *m, struct model_state *s, u32 key, u32 value, u64 now)
{
    u64 used = 0;

    if (!model_there(m, s, key, now)) {
        for (u32 i = 0; i < MODEL_KEYS; i++)
            used += s->there[i];
        for (u32 i = 0; used == m->capacity && i < MODEL_KEYS; i++)
            if (s->there[i] && !model_there(m, s, i, now))
                used--;
        if (used == m->capacity)
            return MODEL_REFUSED;
        s->stamp[key] = now;
    }
    s->there[key] = 1;
    s->value[key] = (u8)value;
    if (now > s->stamp[key])
        s->stamp[key] = now;
    return value;
}

static u64 model_do(const struct model_scenario *m, struct model_state *s, const struct model_step *step, u64 now)
{
    u64 found = model_there(m, s, step->key, now) ? s->value[step->key] : MODEL_ABSENT;

    switch (step->op) {
    case REFRESH:
        if (found != MODEL_ABSENT && now > s->stamp[step->key])
            s->stamp[step->key] = now;
        return found;
    case ADD:
        if (found != MODEL_ABSENT)
            s->value[step->key] += step->value;
        return found;
    case PUT:
        return model_put(m, s, step->key, step->value, now);
    case DEL:
        s->there[step->key] = 0;
        return found != MODEL_ABSENT;
    case COUNT:
        if (found == MODEL_ABSENT)
            return model_put(m, s, step->key, step->value, now);
        s->value[step->key] += step->value;
        return found;
    case MOVE:
        if (found != MODEL_ABSENT && model_there(m, s, step->other, now))
            s->value[step->other] = (u8)found;
        return found;
    case UNLESS:
        return found == MODEL_ABSENT ? model_put(m, s, step->other, step->value, now) : found;
    default:
        return found;
    }
}

static u64 model_packet(const struct model_scenario *m, struct model_state *s, const struct model_packet *p, u64 h)
{
    for (u32 i = 0; i < MODEL_OPS && p->step[i].op; i++)
        h = model_mix(h, model_do(m, s, &p->step[i], p->time));
    return h;
}

/* The content in the end, over the packets' results. */
static u64 model_content(const struct model_scenario *m, const struct model_state *s, const u64 *results)
{
    u64 h = 0;

    for (u32 c = 0; c < m->cores; c++)
        h = model_mix(h, results[c]);
    for (u32 i = 0; i < MODEL_KEYS; i++)
        if (s->there[i] && !model_over(m, s, i, m->end))
            h = model_mix(h, 256 * i + s->value[i]);
    return h;
}

static void model_note(u64 outcome)
{
    for (u32 i = 0; i < model_outcomes; i++)
        if (model_outcome[i] == outcome)
            return;
    CHECK(model_outcomes < MODEL_OUTCOMES);
    model_outcome[model_outcomes++] = outcome;
}

static int model_allows(u64 outcome)
{
    for (u32 i = 0; i < model_outcomes; i++)
        if (model_outcome[i] == outcome)
            return 1;
    return 0;
}

static int model_given(const struct model_packet *p) { return p->step[0].op != NO_OP; }

/* `next` of each core counts its steps: two a packet, the event of expiry and the packet. */
static void model_orders(const struct model_scenario *m, const struct model_state *s, const u8 *next, const u64 *results)
{
    int over = 1;

    for (u32 c = 0; c < m->cores; c++) {
        const struct model_packet *p = &m->packet[c][next[c] / 2];
        struct model_state after = *s;
        u8 then[MODEL_CORES];
        u64 found[MODEL_CORES];
        u32 gone[MODEL_KEYS], n = 0;

        if (next[c] / 2 == MODEL_PACKETS || !model_given(p))
            continue;
        over = 0;
        memcpy(then, next, sizeof then);
        memcpy(found, results, sizeof found);
        then[c]++;
        if (next[c] % 2) {
            if (p->step[0].op != AGE)
                found[c] = model_packet(m, &after, p, found[c]);
            model_orders(m, &after, then, found);
            continue;
        }
        for (u32 i = 0; i < MODEL_KEYS; i++)
            if (model_over(m, s, i, p->time))
                gone[n++] = i;
        for (u32 set = 0; set < 1u << n; set++) {
            after = *s;
            for (u32 i = 0; i < n; i++)
                if (set >> i & 1)
                    after.there[gone[i]] = 0;
            model_orders(m, &after, then, found);
        }
    }
    if (over)
        model_note(model_content(m, s, results));
}

/* All outcomes that some serial order has. */
static void model_serial(const struct model_scenario *m)
{
    struct model_state s = { 0 };
    u8 next[MODEL_CORES] = { 0 };
    u64 results[MODEL_CORES] = { 0 };

    for (u32 i = 0; i < 16 && model_given(&m->before[i]); i++)
        model_packet(m, &s, &m->before[i], 0);
    model_outcomes = 0;
    model_orders(m, &s, next, results);
}

#endif
