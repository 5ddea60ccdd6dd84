/* Timers: against a list that is searched, over random operations; and the bound on what functions of timers
 * may start. */
#include "check.h"

#include "../state/array.h"
#include "../state/hash.h"
#include "../state/lru_hash.h"

struct value {
    u64 before;
    u64 timer[2];
    u64 after;
};

enum { PLACES = 40, AT = 8 };

static const struct shape shape = {
    .key_bytes = 4, .value_bytes = sizeof(struct value), .capacity = PLACES, .timer = AT + 1};

struct mr_instance {
    struct array row;
    struct hash hash;
    struct lru_hash lru;
    struct alarms alarms;
};

static struct mr_instance self;
static struct timers *const all[] = {&self.row.timers, &self.hash.timers, &self.lru.timers};

/* What the functions do and have done. */
static u64 calls, last_time, last_map, last_function;
static u8 *last_value;
static u64 start_again; /* ns; UINT64_MAX: not */

static void call(struct mr_instance *s, u32 map, u32 function, struct mr_packet *pkt)
{
    u8 key[4];

    calls++;
    CHECK(pkt->time >= last_time);
    last_time = pkt->time;
    last_map = map;
    last_function = function;
    if (map == 0)
        last_value = array_timer_fired(&s->row, &shape, key, pkt);
    else if (map == 1)
        last_value = hash_timer_fired(&s->hash, &shape, key, pkt);
    else
        last_value = lru_hash_timer_fired(&s->lru, &shape, key, pkt);
    if (last_value && start_again != UINT64_MAX && map == 0) {
        CHECK(array_timer_start(&s->row, &shape, last_value + AT, start_again, 0, pkt) == 0);
        CHECK(array_timer_cancel(&s->row, &shape, last_value + AT, pkt) == mr_errno(EDEADLK));
    }
}

static void begin(void)
{
    self = (struct mr_instance){0};
    CHECK(array_create(&self.row, &shape, &check_config, NULL) == 0);
    CHECK(hash_create(&self.hash, &shape, &check_config, NULL) == 0);
    CHECK(lru_hash_create(&self.lru, &shape, &check_config, NULL) == 0);
    timers_begin(&self.alarms);
    for (u32 i = 0; i < 3; i++)
        all[i]->alarms = &self.alarms;
    calls = last_time = 0;
    start_again = UINT64_MAX;
}

static void end(void)
{
    array_destroy(&self.row, &shape);
    hash_destroy(&self.hash, &shape);
    lru_hash_destroy(&self.lru, &shape);
}

static void fire(u64 time)
{
    struct mr_packet pkt = {.time = time};

    timers_fire(all, 3, &self.alarms, &self, &pkt, call, NULL);
}

static u8 *lookup(u32 map, u64 key, struct mr_packet *pkt)
{
    if (map == 0)
        return array_map_lookup_elem(&self.row, &shape, &key, key, pkt);
    if (map == 1)
        return hash_map_lookup_elem(&self.hash, &shape, &key, hash_token(&self.hash, &shape, &key), pkt);
    return lru_hash_map_lookup_elem(&self.lru, &shape, &key, lru_hash_token(&self.lru, &shape, &key), pkt);
}

static u64 update(u32 map, u64 key, struct mr_packet *pkt)
{
    struct value value = {.before = key, .timer = {~0ull, ~0ull}, .after = map};
    const u8 *v = (const u8 *)&value;

    if (map == 0)
        return array_map_update_elem(&self.row, &shape, &key, key, v, 0, pkt);
    if (map == 1)
        return hash_map_update_elem(&self.hash, &shape, &key, hash_token(&self.hash, &shape, &key), v, 0, pkt);
    return lru_hash_map_update_elem(&self.lru, &shape, &key, lru_hash_token(&self.lru, &shape, &key), v, 0, pkt);
}

/* One of the helpers: 0 init, 1 set_callback, 2 start, 3 cancel. */
static u64 help(u32 which, u32 map, u8 *timer, u64 a, u64 b, struct mr_packet *pkt)
{
    switch (which * 3 + map) {
    case 0: return array_timer_init(&self.row, &shape, timer, a, pkt);
    case 1: return hash_timer_init(&self.hash, &shape, timer, a, pkt);
    case 2: return lru_hash_timer_init(&self.lru, &shape, timer, a, pkt);
    case 3: return array_timer_set_callback(&self.row, &shape, timer, a, pkt);
    case 4: return hash_timer_set_callback(&self.hash, &shape, timer, a, pkt);
    case 5: return lru_hash_timer_set_callback(&self.lru, &shape, timer, a, pkt);
    case 6: return array_timer_start(&self.row, &shape, timer, a, b, pkt);
    case 7: return hash_timer_start(&self.hash, &shape, timer, a, b, pkt);
    case 8: return lru_hash_timer_start(&self.lru, &shape, timer, a, b, pkt);
    case 9: return array_timer_cancel(&self.row, &shape, timer, pkt);
    case 10: return hash_timer_cancel(&self.hash, &shape, timer, pkt);
    default: return lru_hash_timer_cancel(&self.lru, &shape, timer, pkt);
    }
}

/* The model: by map and key. */
struct model {
    int ready, running;
    u64 callback, due, order;
};

static void random_operations(void)
{
    static struct model model[3][PLACES];
    struct mr_packet pkt = {0};
    u64 started = 0, fired = 0;

    begin();
    memset(model, 0, sizeof(model));
    for (u32 step = 0; step < 60000; step++) {
        u32 map = (u32)draw(3);
        u64 key = draw(PLACES);
        struct model *m = &model[map][key];
        u8 *value = lookup(map, key, &pkt);
        u64 a, b, got, want;

        pkt.time += draw(4) ? 0 : draw(30);
        switch (draw(8)) {
        case 0:
            if (draw(4) == 0) {
                CHECK(update(map, key, &pkt) == 0);
                *m = (struct model){0};
                value = lookup(map, key, &pkt);
                CHECK(mr_load64(value + AT) == 0 && mr_load64(value + AT + 8) == 0);
                CHECK(mr_load64(value) == key);
            }
            break;
        case 1:
            if (map == 1 && draw(4) == 0) {
                got = hash_map_delete_elem(&self.hash, &shape, &key, hash_token(&self.hash, &shape, &key), &pkt);
                CHECK(got == (value ? 0 : mr_errno(ENOENT)));
                *m = (struct model){0};
            }
            break;
        case 2:
            if (!value)
                break;
            a = draw(10);
            want = a != 0 && a != 1 && a != 7 ? mr_errno(EINVAL) : m->ready ? mr_errno(EBUSY) : 0;
            CHECK(help(0, map, value + AT, a, 0, &pkt) == want);
            if (want == 0)
                *m = (struct model){.ready = 1};
            break;
        case 3:
            if (!value)
                break;
            a = 1 + draw(5);
            CHECK(help(1, map, value + AT, a, 0, &pkt) == (m->ready ? 0 : mr_errno(EINVAL)));
            if (m->ready)
                m->callback = a;
            break;
        case 4:
        case 5:
            if (!value)
                break;
            a = draw(200);
            b = draw(5);
            want = b > 3 || !m->callback ? mr_errno(EINVAL) : 0;
            CHECK(help(2, map, value + AT, b & 1 ? pkt.time + a - 20 : a, b, &pkt) == want);
            if (want == 0) {
                m->due = pkt.time + a - (b & 1 ? 20 : 0);
                if (b & 1 && a < 20)
                    m->due = pkt.time;
                m->running = 1;
                m->order = started++;
            }
            break;
        case 6:
            if (!value || draw(3))
                break;
            want = !m->ready ? mr_errno(EINVAL) : (u64)m->running;
            CHECK(help(3, map, value + AT, 0, 0, &pkt) == want);
            m->running = 0;
            m->callback = 0;
            break;
        default:
            /* One at a time, so that each can be compared. */
            for (;;) {
                struct model *first = NULL;
                u32 at = 0;
                u64 before = calls;

                for (u32 i = 0; i < 3 * PLACES; i++) {
                    struct model *n = &model[i / PLACES][i % PLACES];

                    if (n->running && (!first || n->due < first->due ||
                                       (n->due == first->due && n->order < first->order))) {
                        first = n;
                        at = i;
                    }
                }
                CHECK(self.alarms.seen.next <= (first ? first->due : UINT64_MAX));
                if (!first || first->due > pkt.time)
                    break;
                /* All of this moment. */
                fire(first->due);
                CHECK(calls > before);
                CHECK(last_time == first->due);
                for (u32 i = 0; i < 3 * PLACES; i++) {
                    struct model *n = &model[i / PLACES][i % PLACES];

                    if (n->running && n->due == first->due && n->order >= first->order) {
                        at = n->order >= model[at / PLACES][at % PLACES].order ? i : at;
                        before++;
                    }
                }
                CHECK(calls == before);
                CHECK(last_map == at / PLACES && last_function == model[at / PLACES][at % PLACES].callback);
                CHECK(last_value != NULL);
                a = first->due;
                for (u32 i = 0; i < 3 * PLACES; i++)
                    if (model[i / PLACES][i % PLACES].running && model[i / PLACES][i % PLACES].due == a)
                        model[i / PLACES][i % PLACES].running = 0;
                fired = calls;
            }
            fire(pkt.time);
            CHECK(calls == fired);
        }
    }
    CHECK(fired > 1000);
    end();
}

static void start(u32 map, u64 key, u64 ns, struct mr_packet *pkt)
{
    u8 *value;

    update(map, key, pkt);
    value = lookup(map, key, pkt);
    CHECK(help(0, map, value + AT, 1, 0, pkt) == 0);
    CHECK(help(1, map, value + AT, 1, 0, pkt) == 0);
    CHECK(help(2, map, value + AT, ns, 0, pkt) == 0);
}

/* A timer that starts itself again fires for every moment that has passed, up to the bound. */
static void again_and_again(void)
{
    struct mr_packet pkt = {.time = 1000};

    begin();
    start(0, 3, 10, &pkt);
    start_again = 10;
    fire(1009);
    CHECK(calls == 0);
    fire(1100);
    CHECK(calls == 10 && last_time == 1100);
    fire(1100);
    CHECK(calls == 10);
    /* A year: the bound, then once more at the present. */
    fire(1000000000);
    CHECK(calls == 10 + 1 + TIMERS_AGAIN + 1);
    CHECK(last_time == 1000000000 && self.alarms.seen.next == 1000000010);
    /* At once means after the packet at hand. */
    start_again = 0;
    calls = 0;
    fire(1000000010);
    CHECK(calls == 1 && self.alarms.seen.next == 1000000011);
    fire(1000000010);
    CHECK(calls == 1);
    fire(2000000000);
    CHECK(calls == 2 && self.alarms.seen.next == 2000000001);
    end();
}

/* Where one timer uses the bound up, the others still fire. */
static void others_fire(void)
{
    struct mr_packet pkt = {.time = 0};

    begin();
    start(0, 0, 1, &pkt);
    start(1, 7, 900000, &pkt);
    start(2, 9, 1000000, &pkt);
    start_again = 1;
    fire(1000000);
    CHECK(self.hash.timers.running == 0 && self.lru.timers.running == 0 && self.row.timers.running == 1);
    CHECK(calls <= TIMERS_AGAIN + 5 && self.alarms.seen.next == 1000001);
    end();
}

/* An entry that goes takes its timer along. */
static void eviction(void)
{
    struct mr_packet pkt = {.time = 0};

    begin();
    for (u64 key = 0; key < 3 * PLACES; key++)
        start(2, key, 100 + key, &pkt);
    CHECK(self.lru.timers.running == PLACES);
    fire(1000);
    CHECK(calls == PLACES && self.alarms.seen.next == UINT64_MAX);
    start(0, 1, UINT64_MAX, &pkt);
    fire((u64)INT64_MAX - 1);
    CHECK(calls == PLACES);
    CHECK(array_set(&self.row, &shape, (const u8 *)"\1\0\0", (const u8 *)&(struct value){.timer = {1, 1}}, 0) == 0);
    CHECK(self.row.timers.running == 0 && mr_load64(lookup(0, 1, &pkt) + AT) == 0);
    end();
}

/* ---- entries whose expiry is an event ---- */

enum { LIFE = 50 };

static const struct shape expiring = {
    .key_bytes = 4, .value_bytes = 8, .capacity = 6, .expire_after = LIFE, .event = 7};

/* What is there: by key. */
static struct life {
    int there;
    u64 stamp, order;
} lives[2 * PLACES];

static u64 expiries, last_order;

static u64 latest(struct mr_instance *s, u32 map, u32 place)
{
    CHECK(map == 0);
    return hash_latest(&s->hash, &expiring, place);
}

/* As the driver in crates/check has it: the entry goes, then its function runs. */
static void expire(struct mr_instance *s, u32 map, u32 function, struct mr_packet *pkt)
{
    u64 key = 0, value;
    u8 *at = hash_timer_fired(&s->hash, &expiring, (u8 *)&key, pkt);
    struct life *life;

    CHECK(map == 0 && function == 7 && at);
    value = mr_load64(at);
    CHECK(value == key && key < 2 * PLACES);
    life = &lives[key];
    CHECK(life->there && pkt->time == life->stamp + LIFE);
    CHECK(pkt->time > last_time || life->order > last_order);
    last_time = pkt->time;
    last_order = life->order;
    CHECK(hash_map_delete(&s->hash, &expiring, &key, hash_token(&s->hash, &expiring, &key), pkt) == 1);
    life->there = 0;
    expiries++;
}

/* Puts, refreshes and deletions, with time that now and then goes back; each entry that goes by itself does so once, at its
 * moment, in the order of moments and puts. */
static void events(void)
{
    struct timers *const one[] = {&self.hash.timers};
    struct mr_packet pkt = {.time = 1000};
    u64 order = 0, there = 0, refused = 0;

    self = (struct mr_instance){0};
    CHECK(hash_create(&self.hash, &expiring, &check_config, NULL) == 0);
    CHECK(hash_bytes(&expiring) > 0);
    timers_begin(&self.alarms);
    self.hash.timers.alarms = &self.alarms;
    last_time = last_order = expiries = 0;
    for (u32 step = 0; step < 40000; step++) {
        u64 key = draw(2 * PLACES), value = key, time = pkt.time;
        u64 token = hash_token(&self.hash, &expiring, &key);
        struct life *life = &lives[key];

        pkt.time += draw(8) ? draw(4) : draw(2 * LIFE);
        timers_fire(one, 1, &self.alarms, &self, &pkt, expire, latest);
        /* What is due is gone, and nothing else. */
        for (u64 k = 0; k < 2 * PLACES; k++)
            CHECK(!lives[k].there || lives[k].stamp + LIFE > pkt.time);
        if (draw(8) == 0)
            time = pkt.time, pkt.time -= draw(30);
        else
            time = pkt.time;
        CHECK((hash_map_get(&self.hash, &expiring, &key, token, &pkt) != NULL) == life->there);
        switch (draw(4)) {
        case 0:
        case 1:
            if (hash_map_put(&self.hash, &expiring, &key, token, (const u8 *)&value, &pkt)) {
                if (!life->there)
                    life->order = ++order, life->stamp = 0, there++;
                life->there = 1;
                life->stamp = pkt.time > life->stamp ? pkt.time : life->stamp;
            } else {
                refused++;
                CHECK(!life->there);
            }
            break;
        case 2:
            if (hash_map_refresh(&self.hash, &expiring, &key, token, &pkt))
                life->stamp = pkt.time > life->stamp ? pkt.time : life->stamp;
            break;
        default:
            if (draw(2))
                break;
            CHECK(hash_map_delete(&self.hash, &expiring, &key, token, &pkt) == (u64)life->there);
            life->there = 0;
        }
        pkt.time = time;
    }
    CHECK(expiries > 3000 && refused > 100);
    pkt.time += 2 * LIFE;
    timers_fire(one, 1, &self.alarms, &self, &pkt, expire, latest);
    CHECK(hash_used(&self.hash, &expiring, 0) == 0 && self.hash.timers.running == 0);
    CHECK(self.alarms.seen.next == UINT64_MAX && self.alarms.seen.fired == expiries);
    hash_destroy(&self.hash, &expiring);
}

int main(void)
{
    events();
    random_operations();
    again_and_again();
    others_fire();
    eviction();
    return check_report();
}
