/* list, put and remove: entries and leases that go between two objects, against one object that has all of them and never moves any. What each
 * operation gives is the same, numbers and expiries included. */
#include "../state/allocator.h"
#include "../state/array.h"
#include "../state/hash.h"
#include "../state/lru_hash.h"
#include "../state/vector.h"
#include "check.h"

enum { PARTS = 8, MOST = 256, STEPS = 40000 };

struct kept {
    struct mr_saved piece;
    u64 key, value;
};

struct pieces {
    struct kept kept[MOST + 64];
    u32 count, part;
    int all; /* whatever their parts are */
};

static u32 part_of(u64 key) { return (u32)(key * 0x9e3779b97f4a7c15ull >> 61); }

static int keep(void *context, const struct mr_saved *piece)
{
    struct pieces *p = context;
    struct kept *kept = &p->kept[p->count];

    *kept = (struct kept){ .piece = *piece };
    if (piece->what != MR_SAVED_ENTRY && piece->what != MR_SAVED_FREE)
        return 0;
    if (piece->key)
        memcpy(&kept->key, piece->key, 8);
    if (piece->what == MR_SAVED_ENTRY)
        memcpy(&kept->value, piece->value, 8);
    if (p->all || part_of(kept->key) == p->part)
        p->count++;
    return 0;
}

static const struct mr_saved *own(struct kept *kept)
{
    kept->piece.key = (const u8 *)&kept->key;
    kept->piece.value = (const u8 *)&kept->value;
    return &kept->piece;
}

static int by_order(const void *a, const void *b)
{
    const struct mr_saved *x = &((const struct kept *)a)->piece, *y = &((const struct kept *)b)->piece;

    return x->due != y->due ? (x->due < y->due ? -1 : 1) : x->order < y->order ? -1 : x->order > y->order;
}

/* ---- entries ---- */

static u64 hash_step(struct hash *h, const struct shape *s, u64 what, u64 key, u64 value, struct mr_packet *pkt)
{
    u64 token = hash_token(h, s, &key);
    u8 *found;

    switch (what) {
    case 0:
        return hash_map_put(h, s, &key, token, (const u8 *)&value, pkt) != NULL;
    case 1:
        return hash_map_delete(h, s, &key, token, pkt);
    case 2:
        found = hash_map_refresh(h, s, &key, token, pkt);
        return found ? *(u64 *)found : UINT64_MAX;
    default:
        hash_age(h, s, pkt->time);
        found = hash_map_get(h, s, &key, token, pkt);
        return found ? *(u64 *)found : UINT64_MAX;
    }
}

static void move_entries(struct hash *from, struct hash *to, const struct shape *s, u32 part, u64 now)
{
    static struct pieces p;

    p = (struct pieces){ .part = part };
    CHECK(hash_list(from, s, 0, s->capacity, keep, &p) >= 0);
    for (u32 i = 0, left = 0; i < p.count; i++) {
        /* What was put since is told again. */
        int again = 0;

        for (u32 j = 0; j < left; j++)
            again |= p.kept[j].key == p.kept[i].key;
        if (!again)
            p.kept[left++] = p.kept[i];
        if (i + 1 == p.count)
            p.count = left;
    }
    qsort(p.kept, p.count, sizeof(p.kept[0]), by_order);
    for (u32 i = 0; i < p.count; i++) {
        hash_remove(from, s, (const u8 *)&p.kept[i].key, p.kept[i].piece.stamp);
        CHECK(hash_put(to, s, own(&p.kept[i]), now) == 0);
        /* An entry that is there is not put in again, but for one that has expired. */
        if (!hash_expired(to, s, table_entry(&to->table, s, hash_head(s), 0), now) && s->expire_after == 0)
            CHECK(hash_put(to, s, own(&p.kept[i]), now) == -EEXIST);
    }
}

static void entries(u64 expire_after)
{
    struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = MOST, .expire_after = expire_after };
    struct hash part[2], whole;
    int at[PARTS] = { 0 };
    struct mr_packet pkt = { .time = 1000 };

    CHECK(!hash_create(&part[0], &s, &check_config, NULL) && !hash_create(&part[1], &s, &check_config, NULL));
    CHECK(!hash_create(&whole, &s, &check_config, NULL));
    for (u32 step = 0; step < STEPS; step++) {
        u64 what = draw(6), key = draw(100), value = draw(1 << 20);

        pkt.time += draw(20);
        if (draw(8) == 0) {
            u32 moved = (u32)draw(PARTS);

            move_entries(&part[at[moved]], &part[!at[moved]], &s, moved, pkt.time);
            at[moved] = !at[moved];
        }
        CHECK(hash_step(&part[at[part_of(key)]], &s, what, key, value, &pkt) == hash_step(&whole, &s, what, key, value, &pkt));
        if (step % 64 == 0)
            CHECK(hash_count(&part[0], &s, pkt.time) + hash_count(&part[1], &s, pkt.time) == hash_count(&whole, &s, pkt.time));
    }
    hash_destroy(&part[0], &s);
    hash_destroy(&part[1], &s);
    hash_destroy(&whole, &s);
}

/* A full object takes nothing, and is as it was; with something that has expired it has room. */
static void no_room(void)
{
    struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = 4, .expire_after = 100 };
    struct mr_saved piece = { .what = MR_SAVED_ENTRY, .stamp = 1050, .bound = 1150, .due = UINT64_MAX, .length = 8 };
    struct hash h;
    u64 key, value = 7;

    CHECK(!hash_create(&h, &s, &check_config, NULL));
    for (key = 0; key < 4; key++)
        CHECK(!hash_set(&h, &s, (const u8 *)&key, (const u8 *)&value, 1000 + key));
    piece.key = (const u8 *)&key;
    piece.value = (const u8 *)&value;
    CHECK(hash_put(&h, &s, &piece, 1099) == -E2BIG && hash_count(&h, &s, 1099) == 4 && hash_full(&h, &s, 0) == 0);
    CHECK(hash_put(&h, &s, &piece, 1100) == 0 && hash_count(&h, &s, 1100) == 4);
    CHECK(hash_get(&h, &s, (const u8 *)&key, (u8 *)&value, 1149) == 0);
    CHECK(hash_get(&h, &s, (const u8 *)&key, (u8 *)&value, 1150) == -ENOENT);
    piece.what = MR_SAVED_HEAD;
    CHECK(hash_put(&h, &s, &piece, 1100) == -EINVAL);
    hash_destroy(&h, &s);
}

/* ---- leases: places of a list are homes, and which number is leased next is told by the list of each ---- */

static u32 home_table[MOST];
static const u32 *const home_tables[] = { home_table };

static void move_leases(struct allocator *from, struct allocator *to, const struct shape *s, u32 home, u64 now)
{
    static struct pieces p;

    p = (struct pieces){ .all = 1 };
    CHECK(allocator_list(from, s, home, home + 1, keep, &p) == 0);
    for (u32 i = 0; i < p.count; i++)
        if (p.kept[i].piece.what == MR_SAVED_ENTRY) {
            int gone = allocator_remove(from, s, (const u8 *)&p.kept[i].key, p.kept[i].piece.stamp);

            /* One that has expired may have been put on its list by the removal of one that was leased later. */
            CHECK(!gone || now - p.kept[i].piece.stamp >= s->expire_after);
        }
    for (u32 i = 0; i < p.count; i++)
        CHECK(allocator_put(to, s, own(&p.kept[i]), now) == 0);
}

static void leases(u64 expire_after)
{
    struct mr_config config = { .hash_seed = 1, .homes = home_tables, .workers = 1 };
    struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = MOST, .first = 1000, .expire_after = expire_after, .homes = PARTS };
    struct allocator part[2], whole;
    int at[PARTS] = { 0 };
    struct mr_packet pkt = { .time = 1000 };

    for (u32 i = 0; i < MOST; i++)
        home_table[i] = (u32)draw(PARTS);
    CHECK(!allocator_create(&part[0], &s, &config, NULL) && !allocator_create(&part[1], &s, &config, NULL));
    CHECK(!allocator_create(&whole, &s, &config, NULL));
    for (u32 step = 0; step < STEPS; step++) {
        u64 number = s.first + draw(MOST), value = draw(1 << 20);
        u32 home = (u32)draw(PARTS);
        struct allocator *mine;
        u8 *a, *b;

        pkt.time += draw(20);
        if (draw(8) == 0) {
            u32 moved = (u32)draw(PARTS);

            move_leases(&part[at[moved]], &part[!at[moved]], &s, moved, pkt.time);
            at[moved] = !at[moved];
        }
        pkt.home = home;
        if (draw(2)) {
            mine = &part[at[home]];
            CHECK(allocator_allocator_lease(mine, &s, (const u8 *)&value, &pkt) ==
                  allocator_allocator_lease(&whole, &s, (const u8 *)&value, &pkt));
            continue;
        }
        mine = &part[at[home_table[number - s.first]]];
        switch (draw(3)) {
        case 0:
            CHECK(allocator_allocator_free(mine, &s, number, &pkt) == allocator_allocator_free(&whole, &s, number, &pkt));
            break;
        case 1:
            a = allocator_allocator_refresh(mine, &s, number, &pkt);
            b = allocator_allocator_refresh(&whole, &s, number, &pkt);
            CHECK(!a == !b && (!a || *(u64 *)a == *(u64 *)b));
            break;
        default:
            a = allocator_allocator_get(mine, &s, number, &pkt);
            b = allocator_allocator_get(&whole, &s, number, &pkt);
            CHECK(!a == !b && (!a || *(u64 *)a == *(u64 *)b));
        }
    }
    /* Without homes numbers are divided, and none of another's is put in. */
    CHECK(allocator_put(&whole, &(struct shape){ .capacity = MOST }, &(struct mr_saved){ .what = MR_SAVED_FREE }, 0) == -EINVAL);
    allocator_destroy(&part[0], &s);
    allocator_destroy(&part[1], &s);
    allocator_destroy(&whole, &s);
}

/* ---- evicting: the bit of an entry goes along; elements: with their indexes as keys ---- */

static void evicting(void)
{
    struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = 4 };
    struct lru_hash from, to;
    static struct pieces p;
    u64 value = 5;

    CHECK(!lru_hash_create(&from, &s, &check_config, NULL) && !lru_hash_create(&to, &s, &check_config, NULL));
    for (u64 key = 0; key < 4; key++)
        CHECK(!lru_hash_set(&from, &s, (const u8 *)&key, (const u8 *)&value, 0));
    p = (struct pieces){ .all = 1 };
    CHECK(lru_hash_list(&from, &s, 0, 4, keep, &p) == 0 && p.count >= 4);
    for (u32 i = 0; i < 4; i++) {
        p.kept[i].piece.stamp = i % 2;
        CHECK(lru_hash_put(&to, &s, own(&p.kept[i]), 0) == 0);
        CHECK(lru_hash_put(&to, &s, own(&p.kept[i]), 0) == -EEXIST);
    }
    CHECK(to.lately[0] == 0xa && to.table.used == 4);
    /* One more takes the place of one that was not used. */
    p.kept[0].key = 9;
    CHECK(lru_hash_put(&to, &s, own(&p.kept[0]), 0) == 0 && to.table.used == 4);
    lru_hash_destroy(&from, &s);
    lru_hash_destroy(&to, &s);
}

static void elements_by_index(void)
{
    struct shape s = { .key_bytes = 8, .value_bytes = 8, .capacity = 10 };
    static struct pieces p;
    struct vector v;

    CHECK(!vector_create(&v, &s, &check_config, NULL));
    for (u64 i = 0; i < 10; i++) {
        u64 value = 3 * i;

        CHECK(!vector_set(&v, &s, (const u8 *)&i, (const u8 *)&value, 0));
    }
    p = (struct pieces){ .all = 1 };
    CHECK(vector_list(&v, &s, 4, 99, keep, &p) == 0 && p.count == 6);
    for (u32 i = 0; i < p.count; i++)
        CHECK(p.kept[i].key == 4 + i && p.kept[i].value == 3 * (4 + i));
    vector_destroy(&v, &s);
    {
        struct shape narrow = { .key_bytes = 4, .value_bytes = 8, .capacity = 10 };
        struct array a;
        u64 value = 77;
        u32 index = 9;

        CHECK(!array_create(&a, &narrow, &check_config, NULL));
        CHECK(!array_set(&a, &narrow, (const u8 *)&index, (const u8 *)&value, 0));
        p = (struct pieces){ .all = 1 };
        CHECK(array_list(&a, &narrow, 9, 10, keep, &p) == 0 && p.count == 1 && p.kept[0].value == 77);
        array_destroy(&a, &narrow);
    }
}

int main(void)
{
    entries(0);
    entries(300);
    no_room();
    leases(0);
    leases(300);
    evicting();
    elements_by_index();
    return check_report();
}
