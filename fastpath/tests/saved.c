/* save and load: a copy behaves as what was saved, step by step, and is saved to the same pieces; pieces that
 * somebody has changed are refused or make an object that works. */
#include "../state/allocator.h"
#include "../state/array.h"
#include "../state/bloom_filter.h"
#include "../state/global.h"
#include "../state/hash.h"
#include "../state/lru_hash.h"
#include "../state/queue.h"
#include "../state/ringbuf.h"
#include "../state/shared_allocator.h"
#include "../state/shared_hash.h"
#include "../state/shared_vector.h"
#include "../state/sketch.h"
#include "../state/stack.h"
#include "../state/vector.h"
#include "check.h"

enum { MOST_BYTES = 4096, HOMES = 5 };

struct kept {
    struct mr_saved piece;
    u8 key[16];
    u8 value[MOST_BYTES];
};

struct pieces {
    struct kept *kept;
    u64 count, room;
    const struct shape *shape;
};

/* Any object: the tests' own table of functions, as a module has one. */
struct object {
    union {
        struct hash hash;
        struct shared_hash shared_hash;
        struct shared_allocator shared_allocator;
        struct shared_vector shared_vector;
        struct lru_hash lru_hash;
        struct allocator allocator;
        struct array array;
        struct vector vector;
        struct queue queue;
        struct stack stack;
        struct sketch sketch;
        struct bloom_filter bloom_filter;
        struct global global;
        struct ringbuf ringbuf;
    };
    struct alarms alarms;
};

struct kind {
    const char *name;
    int (*create)(struct object *, const struct shape *);
    void (*destroy)(struct object *, const struct shape *);
    int (*save)(struct object *, const struct shape *, mr_saved_fn *, void *);
    int (*load)(struct object *, const struct shape *, const struct mr_saved *, u64);
    /* One operation of these numbers; what a program would see of it. */
    u64 (*step)(struct object *, const struct shape *, const u64 *n, u64 now);
};

static u32 home_table[64];
static const u32 *const home_tables[] = { home_table };
static const struct mr_config config = { .hash_seed = 0x1234, .sketch_seed = 0x5678, .homes = home_tables, .workers = 3 };
/* What a later run makes: other secrets and another seed. */
static const struct mr_config later = { .hash_seed = 0x4321, .sketch_seed = 0x8765, .homes = home_tables, .workers = 3 };
static const struct mr_config *now_making = &config;

#define FUNCTIONS(k)                                                                                       \
    static int k##_makes(struct object *o, const struct shape *s)                                          \
    {                                                                                                      \
        return k##_create(&o->k, s, now_making, NULL);                                                     \
    }                                                                                                      \
    static void k##_unmakes(struct object *o, const struct shape *s) { k##_destroy(&o->k, s); }            \
    static int k##_saves(struct object *o, const struct shape *s, mr_saved_fn *fn, void *context)          \
    {                                                                                                      \
        return k##_save(&o->k, s, fn, context);                                                            \
    }                                                                                                      \
    static int k##_loads(struct object *o, const struct shape *s, const struct mr_saved *piece, u64 now)   \
    {                                                                                                      \
        return k##_load(&o->k, s, piece, now);                                                             \
    }                                                                                                      \
    static u64 k##_steps(struct object *, const struct shape *, const u64 *, u64);                          \
    static const struct kind k##_kind = { #k, k##_makes, k##_unmakes, k##_saves, k##_loads, k##_steps };

FUNCTIONS(hash)
FUNCTIONS(lru_hash)
FUNCTIONS(shared_hash)
FUNCTIONS(shared_allocator)
FUNCTIONS(shared_vector)
FUNCTIONS(allocator)
FUNCTIONS(array)
FUNCTIONS(vector)
FUNCTIONS(queue)
FUNCTIONS(stack)
FUNCTIONS(sketch)
FUNCTIONS(bloom_filter)
FUNCTIONS(global)
FUNCTIONS(ringbuf)

static struct timers *timers_of(struct object *o, const struct kind *k)
{
    return k == &hash_kind ? &o->hash.timers :
           k == &lru_hash_kind ? &o->lru_hash.timers :
           k == &array_kind ? &o->array.timers : NULL;
}

static int make(struct object *o, const struct kind *k, const struct shape *s)
{
    int error = k->create(o, s);

    timers_begin(&o->alarms);
    if (timers_of(o, k))
        timers_of(o, k)->alarms = &o->alarms;
    return error;
}

static u64 folded(u64 seen, const u8 *bytes, u64 length)
{
    for (u64 i = 0; bytes && i < length; i++)
        seen = seen * 31 + bytes[i];
    return seen;
}

/* A timer of a value: made, set or cancelled. */
#define TIMER(k, value)                                                                                  \
    if (s->timer && (value)) {                                                                           \
        u8 *timer = (value) + s->timer - 1;                                                              \
                                                                                                         \
        seen += k##_timer_init(&o->k, s, timer, 1, &pkt);                                                \
        seen += k##_timer_set_callback(&o->k, s, timer, 1 + n[2] % 2, &pkt);                             \
        seen += n[1] % 3 ? k##_timer_start(&o->k, s, timer, n[2] % 300, 0, &pkt) :                       \
                           k##_timer_cancel(&o->k, s, timer, &pkt);                                      \
    }

#define TABLE_STEP(k)                                                                                    \
    static u64 k##_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)                  \
    {                                                                                                    \
        struct mr_packet pkt = { .time = now };                                                          \
        u64 key = n[1] % (s->capacity * 2), seen = 0, token = k##_token(&o->k, s, &key);                 \
        u8 value[64] = { (u8)n[2], (u8)(n[2] >> 8) }, other[8], *found;                                  \
                                                                                                         \
        switch (n[0] % 5) {                                                                              \
        case 0:                                                                                          \
        case 1:                                                                                          \
            seen = k##_map_update_elem(&o->k, s, &key, token, value, n[2] % 3, &pkt);                    \
            break;                                                                                       \
        case 2:                                                                                          \
            return k##_map_delete_elem(&o->k, s, &key, token, &pkt);                                     \
        case 3:                                                                                          \
            found = k##_map_slot(&o->k, s, n[1] % s->capacity, other, &pkt);                             \
            return folded(folded(found != NULL, other, 8), found, s->value_bytes);                       \
        default:                                                                                         \
            break;                                                                                       \
        }                                                                                                \
        found = k##_map_lookup_elem(&o->k, s, &key, token, &pkt);                                        \
        TIMER(k, found)                                                                                  \
        return folded(seen * 2 + (found != NULL), found, s->value_bytes) + k##_full(&o->k, s, now);      \
    }

TABLE_STEP(hash)
TABLE_STEP(lru_hash)

/* By who is alone. Which place an entry has is each core's own and not kept. */
static u64 shared_hash_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)
{
    struct mr_packet pkt = { .time = now, .core = (u32)(n[0] % 3) };
    u64 key = n[1] % (s->capacity * 2), token = shared_hash_token(&o->shared_hash, s, &key);
    u8 value[64] = { (u8)n[2], (u8)(n[2] >> 8) }, *found;

    if (n[0] % 5 < 2)
        return shared_hash_map_update_elem(&o->shared_hash, s, &key, token, value, n[2] % 3, &pkt);
    if (n[0] % 5 == 2)
        return shared_hash_map_delete_elem(&o->shared_hash, s, &key, token, &pkt);
    found = shared_hash_map_refresh(&o->shared_hash, s, &key, token, &pkt);
    return folded(found != NULL, found, s->value_bytes) + shared_hash_full(&o->shared_hash, s, now);
}

static u64 allocator_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)
{
    struct mr_packet pkt = { .time = now, .home = (u32)(n[1] % HOMES) };
    u64 number = s->first + n[1] % s->capacity;
    u8 value[8] = { (u8)n[2] }, *found;

    switch (n[0] % 4) {
    case 0:
        return allocator_allocator_lease(&o->allocator, s, value, &pkt);
    case 1:
        return allocator_allocator_free(&o->allocator, s, number, &pkt);
    case 2:
        allocator_age(&o->allocator, s, now);
        found = allocator_allocator_refresh(&o->allocator, s, number, &pkt);
        return folded(found != NULL, found, s->value_bytes);
    default:
        found = allocator_allocator_get(&o->allocator, s, number, &pkt);
        return folded(found != NULL, found, s->value_bytes) + allocator_full(&o->allocator, s, now);
    }
}

/* By who is alone. Which number is leased is each pool's and not kept: what is leased here is given back, and what is to stay is named. */
static u64 shared_allocator_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)
{
    struct mr_packet pkt = { .time = now, .core = (u32)(n[0] % 3) };
    u64 number = s->first + n[1] % s->capacity, lease;
    u8 value[8] = { (u8)n[2] }, key[8], *found;

    mr_store64(key, number);
    switch (n[0] % 4) {
    case 0:
        return (u64)shared_allocator_set(&o->shared_allocator, s, key, value, now);
    case 1:
        return shared_allocator_allocator_free(&o->shared_allocator, s, number, &pkt);
    case 2:
        found = shared_allocator_allocator_refresh(&o->shared_allocator, s, number, &pkt);
        return folded(found != NULL, found, s->value_bytes);
    default:
        lease = shared_allocator_allocator_lease(&o->shared_allocator, s, value, &pkt);
        CHECK(lease == UINT64_MAX || shared_allocator_allocator_free(&o->shared_allocator, s, lease, &pkt));
        found = shared_allocator_allocator_get(&o->shared_allocator, s, number, &pkt);
        return folded(found != NULL, found, s->value_bytes) * 2 + (lease == UINT64_MAX) +
               shared_allocator_full(&o->shared_allocator, s, now);
    }
}

static u64 shared_vector_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)
{
    struct mr_packet pkt = { .time = now };
    u8 *found = shared_vector_vector_at(&o->shared_vector, s, n[1] % (s->capacity + 2), &pkt);

    if (found)
        found[0] += (u8)n[0];
    return folded(0, found, s->value_bytes);
}

static u64 array_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)
{
    struct mr_packet pkt = { .time = now };
    u64 key = n[1] % (s->capacity + 2), seen = 0;
    u8 value[64] = { (u8)n[2] }, *found;

    if (n[0] % 2)
        seen = array_map_update_elem(&o->array, s, &key, 0, value, n[2] % 3, &pkt);
    found = array_map_lookup_elem(&o->array, s, &key, 0, &pkt);
    TIMER(array, found)
    return folded(seen, found, s->value_bytes);
}

static u64 vector_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)
{
    u8 *found = vector_vector_at(&o->vector, s, n[1] % (s->capacity + 2), NULL);

    (void)now;
    if (found)
        found[0] += (u8)n[0];
    return folded(0, found, s->value_bytes);
}

#define SEQUENCE_STEP(k)                                                                                 \
    static u64 k##_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)                  \
    {                                                                                                    \
        u8 value[64] = { (u8)n[2], (u8)n[1] };                                                           \
                                                                                                         \
        (void)now;                                                                                       \
        switch (n[0] % 3) {                                                                              \
        case 0:                                                                                          \
            return k##_map_push_elem(&o->k, s, value, n[1] % 2 * 2, NULL);                               \
        case 1:                                                                                          \
            return folded(k##_map_peek_elem(&o->k, s, value, NULL), value, s->value_bytes);              \
        default:                                                                                         \
            return folded(k##_map_pop_elem(&o->k, s, value, NULL), value, s->value_bytes);               \
        }                                                                                                \
    }

SEQUENCE_STEP(queue)
SEQUENCE_STEP(stack)

static u64 sketch_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)
{
    struct mr_packet pkt = { .time = now };
    u64 key = n[1] % 50, token = sketch_token(&o->sketch, s, &key);

    return n[0] % 2 ? sketch_sketch_add(&o->sketch, s, &key, token, n[2] % 9, &pkt) :
                      sketch_sketch_count(&o->sketch, s, &key, token, &pkt);
}

static u64 bloom_filter_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)
{
    u8 value[8] = { (u8)n[1], (u8)(n[1] >> 8) };

    (void)now;
    return n[0] % 3 ? bloom_filter_map_peek_elem(&o->bloom_filter, s, value, NULL) :
                      bloom_filter_map_push_elem(&o->bloom_filter, s, value, 0, NULL);
}

static u64 global_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)
{
    (void)now;
    return o->global.data[n[1] % s->value_bytes] += (u8)(n[0] % 3);
}

/* The host has had all records whenever something is saved. */
static void taken(void *context, u32 object, const u8 *bytes, u64 length)
{
    (void)object;
    *(u64 *)context = folded(*(u64 *)context, bytes, length);
}

static u64 ringbuf_steps(struct object *o, const struct shape *s, const u64 *n, u64 now)
{
    u8 value[64] = { (u8)n[2] };
    u64 seen = ringbuf_ringbuf_output(&o->ringbuf, s, value, 1 + n[1] % 60, 0, NULL);

    (void)now;
    seen += ringbuf_ringbuf_query(&o->ringbuf, s, n[0] % 4, NULL);
    ringbuf_drain(&o->ringbuf, s, 0, taken, &seen);
    return seen + ringbuf_ringbuf_query(&o->ringbuf, s, 2, NULL);
}

static int keep(void *context, const struct mr_saved *piece)
{
    struct pieces *p = context;
    struct kept *kept;

    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 64;
        p->kept = realloc(p->kept, p->room * sizeof(*p->kept));
    }
    kept = &p->kept[p->count++];
    memset(kept, 0, sizeof(*kept));
    kept->piece = *piece;
    if (piece->key)
        memcpy(kept->key, piece->key, p->shape->key_bytes);
    if (piece->value)
        memcpy(kept->value, piece->value, piece->length < MOST_BYTES ? piece->length : MOST_BYTES);
    kept->piece.key = kept->piece.value = NULL;
    return 0;
}

static int load(struct object *o, const struct kind *k, const struct shape *s, const struct pieces *p, u64 now)
{
    int error = 0;

    for (u64 i = 0; !error && i < p->count; i++) {
        struct mr_saved piece = p->kept[i].piece;

        piece.key = p->kept[i].key;
        piece.value = p->kept[i].value;
        error = k->load(o, s, &piece, now);
    }
    return error;
}

static struct kind const *firing;
static struct object *firing_object;
static u64 fired;

static void fire(struct mr_instance *self, u32 map, u32 function, struct mr_packet *pkt)
{
    (void)self;
    (void)map;
    fired = fired * 31 + function + pkt->time * 7 + pkt->number +
            timers_fired(timers_of(firing_object, firing)) * 3;
}

/* Some steps; what is seen of each. */
static u64 steps(struct object *o, const struct kind *k, const struct shape *s, u64 *now, u64 count, u64 *each)
{
    u64 seen = 0;

    for (u64 i = 0; i < count; i++) {
        u64 n[3] = { draw(1 << 20), draw(1 << 20), draw(1 << 20) };

        *now += n[0] % 7;
        if (s->timer && o->alarms.seen.next <= *now) {
            struct timers *all[] = { timers_of(o, k) };
            struct mr_packet pkt = { .time = *now };

            firing = k;
            firing_object = o;
            fired = 0;
            timers_fire(all, 1, &o->alarms, NULL, &pkt, fire, NULL);
            /* The next moment is a lower bound, where a timer was cancelled: that nothing was due is no difference. */
            if (fired)
                seen = seen * 31 + fired;
        }
        seen = seen * 31 + k->step(o, s, n, *now);
        if (each)
            each[i] = seen;
    }
    return seen;
}

static int same(const struct pieces *a, const struct pieces *b)
{
    if (a->count != b->count)
        return 0;
    for (u64 i = 0; i < a->count; i++)
        if (memcmp(&a->kept[i], &b->kept[i], sizeof(a->kept[i])))
            return 0;
    return 1;
}

static int by_place(const void *a, const void *b)
{
    u64 x = ((const struct kept *)a)->piece.place, y = ((const struct kept *)b)->piece.place;

    return (x > y) - (x < y);
}

/* A core that loads has the numbers that were its own at start, whoever borrowed them since: the order of free ones is no content. */
static void any_order_of_free(struct pieces *p)
{
    u64 first = 0;

    while (first < p->count && p->kept[first].piece.what != MR_SAVED_FREE)
        first++;
    qsort(p->kept + first, p->count - 1 - first, sizeof(*p->kept), by_place);
}

static void copies(const struct kind *k, const struct shape *s)
{
    struct object first, second;
    struct pieces saved = { .shape = s }, again = { .shape = s };
    u64 now = 1000, other = 1000, mark;

    now_making = &config;
    CHECK(make(&first, k, s) == 0);
    for (u64 round = 0; round < 6; round++) {
        steps(&first, k, s, &now, round * 150, NULL);
        saved.count = again.count = 0;
        CHECK(k->save(&first, s, keep, &saved) == 0);
        CHECK(saved.kept[0].piece.what == MR_SAVED_HEAD);
        CHECK(saved.kept[saved.count - 1].piece.what == MR_SAVED_END);
        now_making = &later;
        CHECK(make(&second, k, s) == 0);
        now_making = &config;
        /* What was in it does not matter; that timers were started there is not forgotten. */
        if (!s->timer)
            steps(&second, k, s, &other, 40, NULL);
        CHECK(load(&second, k, s, &saved, now) == 0);
        CHECK(k->save(&second, s, keep, &again) == 0);
        if (k == &shared_allocator_kind) {
            any_order_of_free(&saved);
            any_order_of_free(&again);
        }
        CHECK(same(&saved, &again));
        mark = check_state;
        other = now;
        {
            u64 a = steps(&first, k, s, &now, 700, NULL), b;

            check_state = mark;
            b = steps(&second, k, s, &other, 700, NULL);
            CHECK(a == b);
            if (a != b)
                printf("%s, round %llu\n", k->name, (unsigned long long)round);
        }
        k->destroy(&second, s);
    }
    k->destroy(&first, s);
    free(saved.kept);
    free(again.kept);
}

static int framed(const struct pieces *p)
{
    for (u64 i = 0; i < p->count; i++)
        if ((p->kept[i].piece.what == MR_SAVED_HEAD) != (i == 0) ||
            (p->kept[i].piece.what == MR_SAVED_END) != (i + 1 == p->count))
            return 0;
    return p->count > 1;
}

/* Pieces with numbers that somebody has changed, left out, doubled or put elsewhere. */
static void hostile(const struct kind *k, const struct shape *s)
{
    static const u64 odd[] = { 0, 1, 2, 63, 64, 0x7ffffffe, 0x7fffffff, 0x80000000, UINT32_MAX, 1ull << 32, UINT64_MAX };
    struct object first, second;
    struct pieces saved = { .shape = s }, changed = { .shape = s };
    u64 now = 1000, refused = 0;

    CHECK(make(&first, k, s) == 0);
    steps(&first, k, s, &now, 500, NULL);
    CHECK(k->save(&first, s, keep, &saved) == 0);
    for (u64 round = 0; round < 300; round++) {
        u64 then = now;

        changed.count = 0;
        for (u64 i = 0; i < saved.count; i++) {
            struct kept kept = saved.kept[i];
            u64 *field[] = { &kept.piece.place, &kept.piece.stamp, &kept.piece.bound, &kept.piece.due,
                             &kept.piece.order, &kept.piece.length };

            kept.piece.key = kept.key;
            kept.piece.value = kept.value;
            if (draw(saved.count) < 2) {
                u64 which = draw(9);

                if (which < 6)
                    *field[which] = draw(2) ? odd[draw(11)] : draw(200);
                else if (which == 6)
                    kept.piece.what = (u32)draw(6);
                else if (which == 7)
                    kept.piece.callback = (u32)draw(5);
                else if (draw(2))
                    continue;
                else
                    keep(&changed, &kept.piece);
                /* The border promises these: a reader of files gives no piece longer than its bytes. */
                if (kept.piece.what == MR_SAVED_BYTES && kept.piece.length > MOST_BYTES)
                    kept.piece.length = MOST_BYTES;
            }
            keep(&changed, &kept.piece);
        }
        CHECK(make(&second, k, s) == 0);
        /* That there is one head, and one end behind all, the host sees to. */
        if (framed(&changed) && load(&second, k, s, &changed, now) == 0)
            steps(&second, k, s, &then, 400, NULL);
        else
            refused++;
        k->destroy(&second, s);
    }
    CHECK(refused > 0 || k == &global_kind || k == &bloom_filter_kind || k == &sketch_kind || k == &ringbuf_kind);
    k->destroy(&first, s);
    free(saved.kept);
    free(changed.kept);
}

/* Where more fit than before, all that was there is there, and the rest is free. */
static void larger(void)
{
    static const struct shape small = { .key_bytes = 8, .value_bytes = 8, .capacity = 40, .expire_after = 300 };
    static const struct shape large = { .key_bytes = 8, .value_bytes = 8, .capacity = 57, .expire_after = 300 };
    struct object first, second;
    struct pieces saved = { .shape = &small };
    struct mr_packet pkt = { .time = 5 };
    u64 now = 1000, count, key;
    u8 value[8] = { 1 };

    CHECK(make(&first, &hash_kind, &small) == 0 && make(&second, &hash_kind, &large) == 0);
    steps(&first, &hash_kind, &small, &now, 300, NULL);
    CHECK(hash_save(&first.hash, &small, keep, &saved) == 0);
    CHECK(load(&second, &hash_kind, &large, &saved, now) == 0);
    count = hash_count(&first.hash, &small, now);
    CHECK(count > 0 && hash_count(&second.hash, &large, now) == count);
    pkt.time = now + 1000;
    for (key = 1000; key < 1057; key++)
        CHECK(hash_map_put(&second.hash, &large, &key, hash_token(&second.hash, &large, &key), value, &pkt) != NULL);
    CHECK(hash_map_put(&second.hash, &large, &key, hash_token(&second.hash, &large, &key), value, &pkt) == NULL);
    CHECK(load(&first, &hash_kind, &small, &saved, now) == 0);
    saved.count = 0;
    CHECK(hash_save(&second.hash, &large, keep, &saved) == 0);
    CHECK(load(&first, &hash_kind, &small, &saved, now) == -E2BIG);
    hash_destroy(&first.hash, &small);
    hash_destroy(&second.hash, &large);
    free(saved.kept);
}

int main(void)
{
    static const struct {
        const struct kind *kind;
        struct shape shape;
    } all[] = {
        { &hash_kind, { .key_bytes = 8, .value_bytes = 12, .capacity = 61 } },
        { &hash_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 61, .expire_after = 200 } },
        { &hash_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 61, .expire_after = 200, .shared = 1 } },
        { &hash_kind, { .key_bytes = 8, .value_bytes = 24, .capacity = 61, .timer = 9 } },
        { &lru_hash_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 70 } },
        { &lru_hash_kind, { .key_bytes = 8, .value_bytes = 24, .capacity = 70, .timer = 1 } },
        { &shared_hash_kind, { .key_bytes = 8, .value_bytes = 12, .capacity = 61, .shared = 1 } },
        { &shared_hash_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 61, .expire_after = 200, .shared = 1 } },
        { &shared_hash_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 61, .expire_after = 200, .shared = 1, .timed = 1 } },
        { &allocator_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 50, .first = 1024 } },
        { &allocator_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 50, .expire_after = 150 } },
        { &allocator_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 50, .expire_after = 150, .shared = 1 } },
        { &allocator_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 50, .first = 7, .expire_after = 150, .homes = HOMES } },
        { &allocator_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 50, .homes = HOMES } },
        { &array_kind, { .key_bytes = 4, .value_bytes = 7, .capacity = 30 } },
        { &array_kind, { .key_bytes = 4, .value_bytes = 24, .capacity = 30, .timer = 5 } },
        { &vector_kind, { .key_bytes = 8, .value_bytes = 9, .capacity = 30 } },
        { &queue_kind, { .value_bytes = 6, .capacity = 21 } },
        { &stack_kind, { .value_bytes = 6, .capacity = 21 } },
        { &sketch_kind, { .key_bytes = 8, .value_bytes = 4, .capacity = 40, .rows = 3, .window = 700 } },
        { &sketch_kind, { .key_bytes = 8, .value_bytes = 4, .capacity = 4000, .rows = 2 } },
        { &bloom_filter_kind, { .value_bytes = 8, .capacity = 300, .rows = 3 } },
        { &global_kind, { .value_bytes = 9001 } },
        { &ringbuf_kind, { .capacity = 4096 } },
        { &shared_allocator_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 50, .first = 1024, .shared = 1, .numbered = 1 } },
        { &shared_allocator_kind, { .key_bytes = 8, .value_bytes = 8, .capacity = 50, .expire_after = 150, .shared = 1, .numbered = 1 } },
        { &shared_vector_kind, { .key_bytes = 8, .value_bytes = 9, .capacity = 30, .shared = 1, .numbered = 1 } },
    };

    for (u32 i = 0; i < 64; i++)
        home_table[i] = i % HOMES;
    for (u64 stream = 0; stream < 4; stream++) {
        check_state = 1 + stream * 1000003;
        for (u32 i = 0; i < sizeof(all) / sizeof(*all); i++) {
            copies(all[i].kind, &all[i].shape);
            hostile(all[i].kind, &all[i].shape);
        }
    }
    larger();
    return check_report();
}
