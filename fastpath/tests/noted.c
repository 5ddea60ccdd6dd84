/* notes: after any sequence of operations, what `changes` has handed out by place, applied in that order, is what the object holds: keys and
 * values exactly, stamps within a sixteenth of their life; and no place waits twice. */
#include "check.h"

#include "../state/allocator.h"
#include "../state/array.h"
#include "../state/hash.h"
#include "../state/lru_hash.h"
#include "../state/vector.h"

#define PLACES 64u

struct copy {
    const struct shape *s;
    struct {
        int there;
        u64 stamp;
        u8 key[16], value[16];
    } at[PLACES];
    u64 rows, same;
};

static int file(void *context, const struct mr_saved *piece)
{
    struct copy *c = context;

    int before;

    CHECK(piece->place < PLACES);
    c->rows++;
    before = c->at[piece->place].there;
    c->at[piece->place].there = piece->what == MR_SAVED_ENTRY;
    if (piece->what != MR_SAVED_ENTRY)
        return 0;
    if (piece->length && before) {
        /* Its key is the one that was told last. */
        c->same++;
        CHECK(!memcmp(c->at[piece->place].key, piece->key, c->s->key_bytes));
    }
    memcpy(c->at[piece->place].key, piece->key, c->s->key_bytes);
    memcpy(c->at[piece->place].value, piece->value, c->s->value_bytes);
    c->at[piece->place].stamp = piece->stamp;
    return 0;
}

/* A place, as a copy should have it. */
static void same(const struct copy *c, u32 place, const struct mr_saved *piece)
{
    CHECK(c->at[place].there == (piece != NULL));
    if (!piece)
        return;
    CHECK(!memcmp(c->at[place].key, piece->key, c->s->key_bytes));
    CHECK(!memcmp(c->at[place].value, piece->value, c->s->value_bytes));
    CHECK(piece->stamp - c->at[place].stamp < (c->s->expire_after ? c->s->expire_after / 16 : 1));
}

static void a_hash(u64 expire_after, u64 seed)
{
    struct shape s = { .key_bytes = 4, .value_bytes = 8, .capacity = PLACES - 3, .expire_after = expire_after, .noted = 1 };
    struct mr_config config = { .hash_seed = seed, .workers = 1 };
    struct mr_packet pkt = { .time = 1000000 };
    struct copy c = { .s = &s };
    struct hash h;

    CHECK(hash_create(&h, &s, &config, NULL) == 0);
    for (u32 n = 0; n < 20000; n++) {
        u64 key = draw(90), value = draw(1u << 30), token = hash_token(&h, &s, &key);
        u8 *found;

        switch (draw(6)) {
        case 0: hash_map_put(&h, &s, &key, token, (const u8 *)&value, &pkt); break;
        case 1: hash_map_delete(&h, &s, &key, token, &pkt); break;
        case 2: hash_map_refresh(&h, &s, &key, token, &pkt); break;
        case 3:
            found = hash_map_get(&h, &s, &key, token, &pkt);
            if (found) {
                memcpy(found, &value, 8);
                hash_written(&h, &s, found + 3);
            }
            break;
        case 4: hash_age(&h, &s, pkt.time); break;
        default: hash_map_update_elem(&h, &s, &key, token, (const u8 *)&value, HASH_BPF_ANY, &pkt);
        }
        pkt.time += draw(expire_after ? expire_after / 20 : 10);
        CHECK(h.notes.count <= s.capacity);
        if (draw(7) == 0)
            hash_changes(&h, &s, 0, 0, draw(20), file, &c);
        if (draw(50) == 0) {
            CHECK(hash_changes(&h, &s, 0, 0, UINT64_MAX, file, &c) == 0);
            for (u32 i = 0; i < s.capacity; i++) {
                struct mr_saved piece;

                same(&c, i, hash_piece(&h, &s, i, &piece) ? &piece : NULL);
            }
        }
        if (draw(500) == 0) {
            /* A copy that begins anew gets everything. */
            memset(c.at, 0, sizeof(c.at));
            hash_changes(&h, &s, 0, UINT64_MAX, 0, file, &c);
        }
    }
    CHECK(c.same > 0 && c.rows > c.same);
    hash_destroy(&h, &s);
}

/* A refresh costs a row at most once in a thirty-second of its life. */
static void few_rows(void)
{
    struct shape s = { .key_bytes = 4, .value_bytes = 8, .capacity = 8, .expire_after = 32 << 20, .noted = 1 };
    struct mr_config config = { .hash_seed = 1, .workers = 1 };
    struct mr_packet pkt = { .time = 1 << 30 };
    u64 key = 7, value = 1, token;
    struct copy c = { .s = &s };
    struct hash h;

    CHECK(hash_create(&h, &s, &config, NULL) == 0);
    token = hash_token(&h, &s, &key);
    hash_map_put(&h, &s, &key, token, (const u8 *)&value, &pkt);
    for (u32 n = 0; n < 32000; n++) {
        pkt.time += 32 * 1024;
        hash_map_refresh(&h, &s, &key, token, &pkt);
        hash_changes(&h, &s, 0, 0, UINT64_MAX, file, &c);
    }
    /* 32,000 * 32 KiB are 500 times 2 MiB, a sixteenth. */
    CHECK(c.rows >= 500 && c.rows <= 1002);
    hash_destroy(&h, &s);
}

static void an_allocator(u64 expire_after)
{
    struct shape s = { .key_bytes = 2, .value_bytes = 8, .capacity = PLACES, .expire_after = expire_after, .first = 1024, .homes = 4, .noted = 1 };
    u32 homes[PLACES];
    const u32 *tables[1] = { homes };
    struct mr_config config = { .hash_seed = 1, .workers = 1, .homes = tables };
    struct mr_packet pkt = { .time = 1000000 };
    struct copy c = { .s = &s };
    struct allocator a;

    for (u32 i = 0; i < PLACES; i++)
        homes[i] = i % 4;
    CHECK(allocator_create(&a, &s, &config, NULL) == 0);
    for (u32 n = 0; n < 20000; n++) {
        u64 value = draw(1u << 30), number = s.first + draw(PLACES);
        u8 *found;

        pkt.home = (u32)draw(4);
        switch (draw(4)) {
        case 0: allocator_allocator_lease(&a, &s, (const u8 *)&value, &pkt); break;
        case 1: allocator_allocator_free(&a, &s, number, &pkt); break;
        case 2: allocator_allocator_refresh(&a, &s, number, &pkt); break;
        default:
            found = allocator_allocator_get(&a, &s, number, &pkt);
            if (found) {
                memcpy(found, &value, 8);
                allocator_written(&a, &s, found);
            }
        }
        pkt.time += draw(expire_after ? expire_after / 20 : 10);
        if (draw(20) == 0) {
            CHECK(allocator_changes(&a, &s, 0, 0, UINT64_MAX, file, &c) == 0);
            for (u32 i = 0; i < s.capacity; i++) {
                struct mr_saved piece;
                int there = allocator_noted_piece(&a, &s, i, &piece);

                CHECK(!there || (piece.order == i % 4 && mr_number(&s, piece.key) == s.first + i));
                same(&c, i, there ? &piece : NULL);
            }
        }
    }
    CHECK(c.rows > 0);
    allocator_destroy(&a, &s);
}

/* Of which entries are evicted; which were used lately is as of their last change. */
static void an_lru_hash(u64 seed)
{
    struct shape s = { .key_bytes = 4, .value_bytes = 8, .capacity = PLACES - 3, .noted = 1 };
    struct mr_config config = { .hash_seed = seed, .workers = 1 };
    struct mr_packet pkt = { .time = 1000000 };
    struct copy c = { .s = &s };
    struct lru_hash h;
    u64 evicted;

    CHECK(lru_hash_create(&h, &s, &config, NULL) == 0);
    for (u32 n = 0; n < 20000; n++) {
        u64 key = draw(90), value = draw(1u << 30), token = lru_hash_token(&h, &s, &key);
        u8 *found;

        switch (draw(4)) {
        case 0: lru_hash_map_delete_elem(&h, &s, &key, token, &pkt); break;
        case 1:
            found = lru_hash_map_lookup_elem(&h, &s, &key, token, &pkt);
            if (found) {
                memcpy(found, &value, 8);
                lru_hash_written(&h, &s, found + 3);
            }
            break;
        default: lru_hash_map_update_elem(&h, &s, &key, token, (const u8 *)&value, 0, &pkt);
        }
        CHECK(h.notes.count <= s.capacity);
        if (draw(7) == 0)
            lru_hash_changes(&h, &s, 0, 0, draw(20), file, &c);
        if (draw(50) == 0) {
            CHECK(lru_hash_changes(&h, &s, 0, 0, UINT64_MAX, file, &c) == 0);
            for (u32 i = 0; i < s.capacity; i++) {
                struct mr_saved piece;
                int there = lru_hash_piece(&h, &s, i, &piece);

                c.at[i].stamp = piece.stamp = 0;
                same(&c, i, there ? &piece : NULL);
            }
        }
    }
    evicted = h.table.full;
    CHECK(evicted > 100 && c.same > 0 && c.rows > c.same);
    lru_hash_destroy(&h, &s);
}

static void an_array(void)
{
    struct shape s = { .key_bytes = 4, .value_bytes = 12, .capacity = PLACES, .noted = 1 };
    struct mr_config config = { .workers = 1 };
    struct copy c = { .s = &s };
    struct array a;

    CHECK(array_create(&a, &s, &config, NULL) == 0);
    for (u32 n = 0; n < 2000; n++) {
        u64 index = draw(PLACES);
        u8 value[12] = { (u8)n, 1, (u8)(n >> 8) }, *p = array_map_lookup_elem(&a, &s, &index, index, NULL);

        if (draw(2)) {
            memcpy(p + 4, value, 8);
            array_written(&a, &s, p + 11);
        } else {
            CHECK(array_map_update_elem(&a, &s, &index, index, value, 0, NULL) == 0);
        }
        CHECK(array_changes(&a, &s, 0, 0, 1, file, &c) == 0);
        CHECK(!memcmp(c.at[index].value, p, 12) && mr_number(&s, c.at[index].key) == index);
    }
    array_destroy(&a, &s);
}

static void a_vector(void)
{
    struct shape s = { .key_bytes = 8, .value_bytes = 12, .capacity = PLACES, .noted = 1 };
    struct mr_config config = { .workers = 1 };
    struct copy c = { .s = &s };
    struct vector v;

    CHECK(vector_create(&v, &s, &config, NULL) == 0);
    for (u32 n = 0; n < 2000; n++) {
        u64 index = draw(PLACES), value = draw(1u << 30);
        u8 *p = vector_vector_at(&v, &s, index, NULL);

        memcpy(p + 4, &value, 8);
        vector_written(&v, &s, p + 11);
        CHECK(vector_changes(&v, &s, 0, 0, 1, file, &c) == 0);
        CHECK(!memcmp(c.at[index].value, p, 12));
    }
    vector_destroy(&v, &s);
}

int main(void)
{
    for (u64 seed = 1; seed < 5; seed++)
        a_hash(seed % 2 ? 1 << 20 : 0, seed);
    few_rows();
    an_allocator(1 << 20);
    an_allocator(0);
    for (u64 seed = 1; seed < 4; seed++)
        an_lru_hash(seed);
    a_vector();
    an_array();
    return check_report();
}
