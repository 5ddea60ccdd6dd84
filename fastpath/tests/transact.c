/* transact: packets of two or three cores over one small map, in every order of their steps with up to three preemptions
 * (TRANSACT_BOUND=4 visits more; under AddressSanitizer up to one): what they find and leave is what some serial order gives. Each planted fault is found. */
#include <time.h>

static int planted;
#define TRANSACT_FAULT(n) (planted == (n))
#define TRANSACT_EXACT
#define TRANSACT_WAYS 3u
#define TRANSACT_HOLD 1u
#define TRANSACT_ALONE 3u
#include "explore.h"
#include "../state/transact_leases.h"
#include "transact_model.h"

/* Both halves of a value say the same, so that a mixture of two shows. */
struct value {
    u64 number, inverse;
};

#define TORN 97u

static struct lock lock;
static struct transact_map map;
static struct transact core[MODEL_CORES];
static struct shape shape;
static const struct model_scenario *now_run;
static u64 found[MODEL_CORES];
static u64 key_of[MODEL_KEYS];

/* ---- packets ---- */

static u64 value_of(const u8 *p)
{
    u64 number = transact_load((const u64 *)p), inverse = transact_load((const u64 *)(p + 8));

    return number == ~inverse ? number : TORN;
}

static struct value value(u64 number) { return (struct value){ number, ~number }; }

/* A program stores to what may be in place by itself. */
static void value_store(u8 *p, u64 number)
{
    struct value v = value(number);

    transact_put_bytes(p, (const u8 *)&v, sizeof v);
}

/* Tokens as a prefetch pass leaves them: of keys with odd names as it found them before the run, which others outdate. */
static u64 named[MODEL_KEYS];

static u64 token_of(u32 key)
{
    if (key % 2)
        return named[key];
    return transact_map_named(&map, &shape, transact_map_token(&map, &shape, &key_of[key]));
}

/* Whether lookups have their words in places, as long as all is well (sync/transact_few.h); else in the sets from the beginning. */
static int fews;
static struct transact_few few_of[MODEL_CORES];
static struct value few_copy[MODEL_CORES];
static struct mr_packet pkt_of[MODEL_CORES];
static u64 few_commits; /* of packets that came to their end with places only, and had found something */

/* What the emitter says of an operation: the place of its lookup, 0 for the one that copies; none for another one behind that in the
 * same map, as it may find what was stored to the copy. */
static struct transact_few_read *few_place(struct transact *t, int stores)
{
    struct transact_few *few = &few_of[t->core];

    if (few->read[0].word)
        return NULL;

    for (u32 i = stores ? 0 : 1; i < (stores ? 1 : TRANSACT_FEW); i++)
        if (!few->read[i].word)
            return &few->read[i];
    return NULL;
}

static u8 *get(struct transact *t, const u64 *key, u64 token, int refresh, int stores)
{
    struct transact_few *few = &few_of[t->core];
    u8 *p;

    if (fews && few->state == TRANSACT_FEW_PLACES) {
        struct transact_few_read *f = few_place(t, stores);
        u8 *copy = stores ? (u8 *)&few_copy[t->core] : NULL;

        if (f) {
            u64 now = pkt_of[t->core].time;

            few->stored |= (u32)stores;
            if (shape.numbered ? transact_leases_few_get(t, &map, &shape, *key - shape.first, refresh, copy, now, f, &p) :
                transact_map_few_get(t, &map, &shape, key, token, refresh, copy, now, f, &p))
                return p;
        }
        transact_few_sets(t, &pkt_of[t->core], few);
    }
    return shape.numbered ? transact_leases_get(t, &map, &shape, *key, refresh, stores) :
           transact_map_get(t, &map, &shape, key, token, refresh, stores);
}

/* Before an operation that always has the sets. */
static void sets(struct transact *t)
{
    if (fews)
        transact_few_sets(t, &pkt_of[t->core], &few_of[t->core]);
}

static void attempt_begins(struct transact *t, u64 now)
{
    struct transact_few *few = &few_of[t->core];

    pkt_of[t->core].time = now;
    if (fews) {
        *few = (struct transact_few){ .state = transact_few_begin(t) };
        undo_begin(&t->undo);
    }
    if (!fews || few->state == TRANSACT_FEW_SETS) {
        t->time = now;
        transact_begin(t);
    }
}

static int attempt_commits(struct transact *t)
{
    struct transact_few *few = &few_of[t->core];
    int places = few->state == TRANSACT_FEW_PLACES && (few->read[0].word || few->read[1].word), done;

    if (!fews)
        return transact_commit(t);
    done = transact_few_end(t, &pkt_of[t->core], few) == TRANSACT_DONE;
    few_commits += done && places;
    return done;
}

/* 0: the attempt ends. */
static int operate(struct transact *t, const struct model_step *step, u64 *result)
{
    u64 *key = &key_of[step->key], *other = &key_of[step->other];
    u64 token = token_of(step->key), other_token = token_of(step->other);
    struct value v = value(step->value);
    u64 deleted;
    u8 *p, *q;

    if (step->op == DEL) {
        sets(t);
        deleted = transact_map_delete(t, &map, &shape, key, token);
        *result = deleted;
        return deleted != MR_RESTART_NUMBER;
    }
    if (step->op == PUT) {
        sets(t);
        p = transact_map_put(t, &map, &shape, key, token, (const u8 *)&v);
        *result = p ? step->value : MODEL_REFUSED;
        return p != MR_RESTART;
    }
    p = get(t, key, token, step->op == REFRESH, step->op == ADD || step->op == COUNT);
    if (p == MR_RESTART)
        return 0;
    *result = p ? value_of(p) : MODEL_ABSENT;
    switch (step->op) {
    case ADD:
        if (p)
            value_store(p, *result + step->value);
        return 1;
    case COUNT:
        if (p) {
            value_store(p, *result + step->value);
            return 1;
        }
        sets(t);
        p = transact_map_put(t, &map, &shape, key, token, (const u8 *)&v);
        *result = p ? step->value : MODEL_REFUSED;
        return p != MR_RESTART;
    case MOVE:
        if (!p)
            return 1;
        q = get(t, other, other_token, 0, 1);
        if (q == MR_RESTART)
            return 0;
        if (q)
            value_store(q, *result);
        return 1;
    case UNLESS:
        if (p)
            return 1;
        sets(t);
        q = transact_map_put(t, &map, &shape, other, other_token, (const u8 *)&v);
        *result = q ? step->value : MODEL_REFUSED;
        return q != MR_RESTART;
    default:
        return 1;
    }
}

/* ---- the same of numbers that are leased: a key's name stands for the number that was leased for it ---- */

#define FIRST 1000u
/* A value says whose it is, as a number that was freed may be another's by now. */
#define OWNED(key, value) (32u * (key) + (value))
#define NOBODY OWNED(MODEL_KEYS, 0)

static u64 number_of[MODEL_KEYS];

static int lease(struct transact *t, u32 key, u32 number, u64 *result)
{
    struct value v = value(OWNED(key, number));
    u64 leased;

    sets(t);
    leased = transact_leases_lease(t, &map, &shape, (const u8 *)&v);

    if (leased == MR_RESTART_NUMBER)
        return 0;
    *result = leased == UINT64_MAX ? MODEL_REFUSED : number;
    if (leased != UINT64_MAX)
        number_of[key] = leased;
    return 1;
}

static int operate_number(struct transact *t, const struct model_step *step, u64 *result)
{
    u64 found;
    u8 *p;

    if (step->op == PUT)
        return lease(t, step->key, step->value, result);
    p = get(t, &number_of[step->key], 0, 0, step->op == ADD);
    if (p == MR_RESTART)
        return 0;
    found = p ? value_of(p) : NOBODY;
    *result = found == TORN ? found : found / 32 == step->key ? found % 32 : MODEL_ABSENT;
    switch (step->op) {
    case REFRESH:
        return *result == MODEL_ABSENT ||
               get(t, &number_of[step->key], 0, 1, 0) != MR_RESTART;
    case DEL:
        sets(t);
        found = *result == MODEL_ABSENT ? 0 : transact_leases_free(t, &map, &shape, number_of[step->key]);
        *result = found;
        return found != MR_RESTART_NUMBER;
    case ADD:
        if (*result != MODEL_ABSENT)
            value_store(p, found + step->value);
        return 1;
    case UNLESS:
        return *result != MODEL_ABSENT || lease(t, step->other, step->value, result);
    default:
        return 1;
    }
}

static u64 packet(struct transact *t, const struct model_packet *p, u64 before)
{
    u64 h, result;

    if (p->step[0].op == AGE) {
        transact_map_age(t, &map, &shape, p->time);
        return before;
    }
    for (;;) {
        u32 i = 0;

        h = before;
        attempt_begins(t, p->time);
        while (i < MODEL_OPS && p->step[i].op && (shape.numbered ? operate_number : operate)(t, &p->step[i], &result)) {
            h = model_mix(h, result);
            i++;
        }
        if (i == MODEL_OPS || !p->step[i].op) {
            if (attempt_commits(t))
                break;
        } else {
            sets(t);
        }
        transact_again(t);
    }
    transact_end(t);
    return h;
}

static void work(u32 fiber)
{
    lock_read(&lock, fiber);
    for (u32 i = 0; i < MODEL_PACKETS && model_given(&now_run->packet[fiber][i]); i++) {
        found[fiber] = packet(&core[fiber], &now_run->packet[fiber][i], found[fiber]);
        lock_read_again(&lock, fiber);
    }
    lock_read_end(&lock, fiber);
}

/* ---- the state before a run ---- */

static struct area {
    void *at;
    u64 bytes;
    u8 *kept;
} area[9];
static u32 areas;

static void keep(void *at, u64 bytes)
{
    struct area *a = &area[areas++];

    a->at = at;
    a->bytes = bytes;
    a->kept = (u8 *)realloc(a->kept, bytes);
    memcpy(a->kept, at, bytes);
}

static void restore(void)
{
    for (u32 i = 0; i < areas; i++)
        memcpy(area[i].at, area[i].kept, area[i].bytes);
    memset(found, 0, sizeof found);
}

static void prepare(const struct model_scenario *m)
{
    struct mr_config config = check_config;
    u64 number = 1;

    config.workers = m->cores;
    now_run = m;
    shape = (struct shape){ .key_bytes = 8, .value_bytes = sizeof(struct value), .capacity = m->capacity,
                            .expire_after = m->expire_after, .shared = 1, .timed = m->timed, .numbered = m->numbered,
                            .first = m->numbered ? FIRST : 0 };
    CHECK(lock_create(&lock, m->cores) == 0);
    CHECK(transact_map_create(&map, &shape, &config) == 0);
    for (u32 i = 0; i < m->cores; i++)
        transact_create(&core[i], &lock, i);
    /* Keys with odd names are in other buckets than those with even ones, where there are two. */
    for (u32 i = 0; i < MODEL_KEYS && !m->numbered; number++)
        if (!map.mask || (transact_map_token(&map, &shape, &number) & 1) == i % 2)
            key_of[i++] = number;
    for (u32 i = 0; i < MODEL_KEYS && !m->numbered; i++)
        named[i] = transact_map_token(&map, &shape, &key_of[i]);
    /* Which numbers are leased first is known. */
    for (u32 i = 0; i < MODEL_KEYS; i++)
        number_of[i] = FIRST + i;
    for (u32 i = 0; i < 16 && model_given(&m->before[i]); i++) {
        u32 c = m->before_core[i];

        lock_read(&lock, c);
        packet(&core[c], &m->before[i], 0);
        lock_read_end(&lock, c);
    }
    for (u32 i = 0; i < MODEL_KEYS && !m->numbered; i++)
        named[i] = transact_map_named(&map, &shape, named[i]);
    areas = 0;
    keep(number_of, sizeof number_of);
    keep(&lock, sizeof lock);
    keep(lock.line, sizeof(struct lock_line) * m->cores);
    keep(&map, sizeof map);
    keep(map.bucket, transact_map_part(&shape));
    keep(map.pools.pool, map.pools.bytes);
    keep(map.stamps.data, map.stamps.cores * map.stamps.stride);
    keep(core, sizeof core);
}

static void finish(void)
{
    restore();
    transact_map_destroy(&map, &shape);
    lock_destroy(&lock);
}

/* ---- after a run ---- */

/* The entries of a list, at most `most`. */
static u32 listed(u32 index, u8 *seen, u32 most)
{
    u32 n = 0;

    for (; index != POOLS_NIL && n < most; index = map.pools.link[index], n++) {
        if (index >= shape.capacity)
            return most;
        seen[index]++;
    }
    return n;
}

static int sound(void)
{
    u8 seen[64] = { 0 };
    u32 ways = 0, filed = 0, heaps = 0, returned = 0, most = (u32)shape.capacity + 1;

    for (u32 c = 0; c < lock.cores; c++) {
        struct pool *p = &map.pools.pool[c];

        if (lock.line[c].next != lock.line[c].serving || core[c].helds || core[c].alone)
            return 0;
        if (listed(p->free, seen, most) != p->frees || listed(p->fresh, seen, most) == most ||
            listed(p->waiting, seen, most) == most)
            return 0;
        returned += listed(p->returned, seen, most);
        heaps += p->expiry.count;
    }
    for (u32 i = 0; !shape.numbered && i < map.mask + 1 + transact_map_spares(&shape); i++) {
        if (map.bucket[i].word & TRANSACT_FLAGS)
            return 0;
        for (u32 w = 0; w < TRANSACT_WAYS; w++)
            ways += map.bucket[i].way[w] != 0;
    }
    for (u32 i = 0; i < shape.capacity; i++) {
        u64 word = *transact_map_word(&map, &shape, i), token;

        if (word & (TRANSACT_TAKEN | TRANSACT_DYING) || seen[i] != !!(word & TRANSACT_DEAD))
            return 0;
        if (word & TRANSACT_DEAD)
            continue;
        filed++;
        if (shape.numbered)
            continue;
        token = transact_map_token(&map, &shape, transact_map_key(&map, &shape, i));
        if (!transact_map_way(&map, &shape, transact_map_first(&map, token), token, i))
            return 0;
    }
    return (shape.numbered || ways == filed) && !(map.word & TRANSACT_TAKEN) && (!shape.expire_after || heaps == filed + returned);
}

static u64 outcome(void)
{
    u64 cursor = 0, key, h = 0;
    u8 there[MODEL_KEYS] = { 0 }, number[MODEL_KEYS] = { 0 };
    struct value v;

    while (transact_map_next(&map, &shape, &cursor, (u8 *)&key, (u8 *)&v, now_run->end) == 0)
        for (u32 i = 0; i < MODEL_KEYS; i++)
            if (shape.numbered ? v.number / 32 == i : key_of[i] == key) {
                there[i]++;
                number[i] = v.number != ~v.inverse ? TORN : (u8)(shape.numbered ? v.number % 32 : v.number);
            }
    for (u32 c = 0; c < now_run->cores; c++)
        h = model_mix(h, found[c]);
    for (u32 i = 0; i < MODEL_KEYS; i++)
        for (u32 n = 0; n < there[i]; n++)
            h = model_mix(h, 256 * i + number[i]);
    return h;
}

/* Over all runs: every part of the protocol has been met. */
static struct {
    u64 aborts, holds, alone, graces;
} met;

/* All orders of a scenario, or those up to the first whose outcome no serial order has; whether there is one. */
static int violates(const struct model_scenario *m, u32 bound)
{
    int wrong = 0;

    prepare(m);
    model_serial(m);
    explore_first(bound);
    do {
        restore();
        explore_run(m->cores, work);
        for (u32 c = 0; c < m->cores; c++) {
            met.aborts += core[c].count.aborts;
            met.holds += core[c].count.holds;
            met.alone += core[c].count.alone;
            met.graces += core[c].count.graces;
        }
        wrong = explore.stuck || !sound() || !model_allows(outcome());
    } while (!wrong && explore_next());
    if (wrong && !planted)
        printf("%s: run %llu with %u preemptions: %s\n", m->name, (unsigned long long)explore.runs, explore.preemptions,
               explore.stuck ? "no progress" : !sound() ? "the map is not sound" : "no serial order gives this");
    finish();
    return wrong;
}

#include "transact_scenarios.h"

/* ---- time ---- */

/* Each core's packet stores its time in one value, and says whether it found a later one there: with times in entries none does, and
 * the latest stays. */
static const struct model_scenario clock_scenario = {
    .name = "clock", .capacity = 4, .cores = 3, .timed = 1, .before = { PUTS(0) },
    .packet = { { AT(250, { GET, 0, 0, 0 }) }, { AT(100, { GET, 0, 0, 0 }) }, { AT(150, { GET, 0, 0, 0 }) } },
};

static u32 clock_backwards;

static void clock_work(u32 fiber)
{
    struct transact *t = &core[fiber];
    u64 key = key_of[0], token = transact_map_token(&map, &shape, &key), was = 0;

    lock_read(&lock, fiber);
    t->time = lock_time_read(&lock, fiber, now_run->packet[fiber][0].time);
    for (;;) {
        u8 *p;

        transact_begin(t);
        p = transact_map_get(t, &map, &shape, &key, token, 0, 1);
        if (p != MR_RESTART) {
            was = value_of(p);
            value_store(p, t->time);
            if (transact_commit(t))
                break;
        }
        transact_again(t);
        t->time = t->alone ? lock_time_write(&lock, t->time) : lock_time_read(&lock, fiber, t->time);
    }
    transact_end(t);
    clock_backwards += was != TORN && was > t->time;
    lock_read_end(&lock, fiber);
}

/* Whether time went back in some order. */
static int clock_violates(u32 bound)
{
    int wrong = 0;

    prepare(&clock_scenario);
    explore_first(bound);
    do {
        u64 key = key_of[0];
        struct value v;

        restore();
        clock_backwards = 0;
        explore_run(clock_scenario.cores, clock_work);
        core[0].alone = 1;
        memcpy(&v, transact_map_get(&core[0], &map, &shape, &key, transact_map_token(&map, &shape, &key), 0, 0), sizeof v);
        core[0].alone = 0;
        wrong = explore.stuck || clock_backwards || v.number != 250;
    } while (!wrong && explore_next());
    finish();
    return wrong;
}

/* ---- progress ---- */

/* One attempt to add to a key; whether it committed. */
static int attempt(struct transact *t, u64 key, u64 add)
{
    u8 *p;

    attempt_begins(t, t->time);
    p = get(t, &key, transact_map_token(&map, &shape, &key), 0, 1);
    if (p == MR_RESTART || !p)
        return 0;
    value_store(p, value_of(p) + add);
    return 1;
}

/* A packet whose entry another core writes during each of its attempts commits by its fifth: it has the word by then, and the
 * other one gives way. And a core that stalls while it has a word keeps nobody from committing who does not need that. */
static void progress(void)
{
    static const struct model_scenario two = { .name = "progress", .capacity = 4, .cores = 2, .before = { PUTS(0), PUTS(1) } };
    struct transact *victim = &core[0], *other = &core[1];
    u32 tries = 1;

    prepare(&two);
    lock_read(&lock, 0);
    lock_read(&lock, 1);
    for (;; tries++) {
        int ran = attempt(victim, key_of[0], 1);

        if (attempt(other, key_of[0], 1) && attempt_commits(other))
            transact_end(other);
        else
            transact_abort(other);
        if (ran && attempt_commits(victim))
            break;
        transact_again(victim);
    }
    transact_end(victim);
    CHECK(tries == TRANSACT_HOLD + 1);
    CHECK(victim->count.holds == 1 && victim->count.alone == 0);
    /* The other core has the word of one entry, and does not go on. */
    {
        struct transact_find f;
        u64 key = key_of[1];

        transact_begin(other);
        CHECK(transact_map_seek(other, &map, &shape, &key, transact_map_token(&map, &shape, &key), &f) == TRANSACT_THERE);
        CHECK(transact_cas(transact_map_word(&map, &shape, f.index), f.seen, f.seen | TRANSACT_TAKEN));
        CHECK(attempt(victim, key_of[0], 1) && attempt_commits(victim));
        transact_end(victim);
        CHECK(!attempt(victim, key_of[1], 1) && victim->again);
        transact_abort(victim);
        transact_store(transact_map_word(&map, &shape, f.index), f.seen);
        CHECK(attempt(victim, key_of[1], 1) && attempt_commits(victim));
        transact_end(victim);
    }
    lock_read_end(&lock, 0);
    lock_read_end(&lock, 1);
    finish();
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
    const char *more = getenv("TRANSACT_BOUND");
#ifdef __AVX2__
    const u32 deep = 3;
#else
    const u32 deep = 2; /* once is enough */
#endif
    u32 bound = more ? (u32)atoi(more) : MR_GAP ? 1 : deep;

    for (u32 i = 0; i < 2 * sizeof scenarios / sizeof *scenarios; i++) {
        const struct model_scenario *m = &scenarios[i / 2];
        u64 runs = explore.runs;
        double began = seconds();

        fews = i % 2;
        CHECK(!violates(m, m->cores > 2 && bound > 1 ? bound - 1 : bound));
        printf("%-10s %7llu orders, %4u outcomes, %.2f s%s\n", m->name, (unsigned long long)(explore.runs - runs),
               model_outcomes, seconds() - began, fews ? ", words in places" : "");
    }
    /* A check that finds nothing wrong with these would find nothing. */
    for (u32 n = 0; n < 2 * sizeof faults / sizeof *faults; n++) {
        u64 runs = explore.runs;
        u32 f = n / 2;
        int caught = 0;

        fews = n % 2;
        planted = faults[f].fault;
        if (planted == TRANSACT_FAULT_FEW && !fews)
            continue;
        for (u32 i = 0; !caught && i < sizeof scenarios / sizeof *scenarios; i++)
            if (!strcmp(scenarios[i].name, faults[f].scenario))
                caught = violates(&scenarios[i], faults[f].bound);
        planted = 0;
        CHECK(caught);
        printf("fault %s: %s after %llu orders%s\n", faults[f].name, caught ? "found" : "not found",
               (unsigned long long)(explore.runs - runs), fews ? ", words in places" : "");
    }
    CHECK(few_commits > 1000);
    for (fews = 0; fews < 2; fews++)
        progress();
    fews = 0;
    CHECK(!clock_violates(bound > 1 ? bound - 1 : bound));
    planted = TRANSACT_FAULT_TIME;
    CHECK(clock_violates(2));
    planted = 0;
    CHECK(met.aborts && met.holds && met.alone && met.graces);
    printf("aborts %llu, words held %llu, alone %llu, graces %llu\n", (unsigned long long)met.aborts,
           (unsigned long long)met.holds, (unsigned long long)met.alone, (unsigned long long)met.graces);
    printf("%llu orders, %.1f s\n", (unsigned long long)explore.runs, seconds());
    return check_report();
}
