/* lpm against a list of prefixes that is searched through: both forms of key, all lengths, with and
 * without the table by the first 16 bits. */
#include "../state/lpm.h"
#include "check.h"

enum { MOST = 2000 };

struct prefix {
    u8 address[256];
    u32 bits, value;
    int used;
};

static int covers(const struct prefix *p, const u8 *address, u32 limit)
{
    if (!p->used || p->bits > limit)
        return 0;
    for (u32 i = 0; i < p->bits; i++)
        if ((p->address[i / 8] ^ address[i / 8]) >> (7 - i % 8) & 1)
            return 0;
    return 1;
}

static struct prefix *longest(struct prefix *all, const u8 *address, u32 limit)
{
    struct prefix *best = NULL;

    for (u32 i = 0; i < MOST; i++)
        if (covers(&all[i], address, limit) && (!best || all[i].bits > best->bits))
            best = &all[i];
    return best;
}

static struct prefix *exactly(struct prefix *all, const u8 *address, u32 bits)
{
    struct prefix *p = longest(all, address, bits);

    return p && p->bits == bits ? p : NULL;
}

static void make_key(const struct shape *s, u64 *word, u8 *key, const u8 *address, u32 bits)
{
    mr_store32(key, bits);
    memcpy(key + 4, address, lpm_form(s).address_bytes);
    mr_pad_key(word, key + (lpm_is_bpf(s) ? 0 : 4), s->key_bytes);
}

/* Every node either is stored or has two children, children are longer than their node, begin with it
 * and are on the right side. */
static u32 check_node(const struct lpm_trie *t, struct lpm_form f, u32 at, u32 *stored)
{
    const struct lpm_node *n;
    u32 count = 1;

    if (at == MR_NONE)
        return 0;
    n = lpm_node(t, f, at);
    CHECK(n->value != MR_NONE || (n->child[0] != MR_NONE && n->child[1] != MR_NONE));
    CHECK(n->value == MR_NONE || t->owner[n->value] == at);
    *stored += n->value != MR_NONE;
    for (u32 side = 0; side < 2; side++) {
        if (n->child[side] != MR_NONE) {
            const struct lpm_node *c = lpm_node(t, f, n->child[side]);

            CHECK(c->bits > n->bits);
            CHECK(lpm_common(f, n->word, c->word, n->bits) == n->bits);
            CHECK(lpm_bit(f, c->word, n->bits) == side);
        }
        count += check_node(t, f, n->child[side], stored);
    }
    return count;
}

static void check_structure(const struct lpm *l, const struct shape *s)
{
    u32 stored = 0;

    CHECK(check_node(&l->trie, lpm_form(s), l->trie.top, &stored) == l->trie.used_nodes);
    CHECK(stored == l->trie.used);
    CHECK(l->trie.used_nodes <= 2 * l->trie.used);
}

struct copy {
    struct lpm l;
    const struct shape *s;
};

static int receive(void *context, const struct mr_saved *piece)
{
    struct copy *copy = context;

    return lpm_load(&copy->l, copy->s, piece, 0);
}

/* A copy that has taken up all pieces, over prefixes of its own, goes on in its place. */
static void move(struct lpm *l, const struct shape *s)
{
    struct copy copy = { .s = s };
    struct mr_saved piece = { .what = MR_SAVED_ENTRY, .order = lpm_bits(s) + 1, .length = s->value_bytes };
    u8 key[260] = { 0xff, 0xff, 0xff, 0xff }, value[4] = { 0 }, own[260] = { 0 };

    CHECK(lpm_create(&copy.l, s, &check_config, NULL) == 0);
    CHECK(lpm_set(&copy.l, s, own, value, 0) == 0);
    CHECK(lpm_save(l, s, receive, &copy) == 0);
    piece.key = key;
    piece.value = value;
    CHECK(lpm_load(&copy.l, s, &piece, 0) == -EINVAL);
    lpm_destroy(l, s);
    *l = copy.l;
}

static void random_operations(u32 address_bytes, u64 capacity, int bpf, u64 steps)
{
    struct shape shape = { .key_bytes = address_bytes + (bpf ? 4 : 0), .value_bytes = 4, .capacity = capacity,
                           .flags = bpf ? 1 : 0 };
    const struct shape *s = &shape;
    struct mr_packet pkt = { 0 };
    static struct prefix all[MOST];
    u32 used = 0;
    struct lpm l;

    memset(all, 0, sizeof(all));
    CHECK(lpm_create(&l, s, &check_config, NULL) == 0);
    for (u64 step = 0; step < steps; step++) {
        u8 address[256] = { 0 }, key[260], got[4];
        u64 word[MR_KEY_WORDS_MAX], token, want;
        u32 bits = (u32)draw(8 * address_bytes + 1), value = (u32)step;
        u64 flags = draw(6) ? 0 : draw(4);
        struct prefix *p;
        u8 *to;

        /* Few different bits, so that prefixes nest; sometimes one an earlier one had. */
        for (u32 i = 0; i < address_bytes; i++)
            address[i] = draw(3) ? 0 : (u8)(draw(2) ? 1 << draw(8) : draw(256));
        if (draw(3) == 0) {
            p = &all[draw(MOST)];
            if (p->used) {
                memcpy(address, p->address, address_bytes);
                bits = draw(2) ? p->bits : bits;
            }
        }
        if (draw(200) == 0)
            bits += 8 * address_bytes;
        make_key(s, word, key, address, bits);
        token = lpm_token(&l, s, word);
        lpm_prefetch(&l, s, token);
        token = lpm_prefetch_entry(&l, s, token);
        switch (draw(5)) {
        case 0:
        case 1:
            p = longest(all, address, bpf ? bits : 8 * address_bytes);
            if (bpf && bits > 8 * address_bytes)
                p = NULL;
            to = bpf ? lpm_map_lookup_elem(&l, s, word, token, &pkt) : lpm_lpm_get(&l, s, word, token, &pkt);
            CHECK(!to == !p);
            CHECK(!to || !p || mr_load32(to) == p->value);
            p = bits > 8 * address_bytes ? NULL : longest(all, address, bits);
            CHECK(lpm_get(&l, s, key, got, 0) == (p ? 0 : -ENOENT));
            CHECK(!p || mr_load32(got) == p->value);
            break;
        case 2:
        case 3:
            p = bits <= 8 * address_bytes ? exactly(all, address, bits) : NULL;
            want = (bpf && flags == 3) || bits > 8 * address_bytes ? mr_errno(EINVAL)
                   : bpf && p && flags == 1                        ? mr_errno(EEXIST)
                   : bpf && !p && flags == 2                       ? mr_errno(ENOENT)
                   : !p && used == capacity                        ? mr_errno(ENOSPC)
                                                                   : 0;
            if (bpf) {
                CHECK(lpm_map_update_elem(&l, s, word, token, (u8 *)&value, flags, &pkt) == want);
            } else if (draw(2)) {
                CHECK((u64)(s64)lpm_set(&l, s, key, (u8 *)&value, 0) == want);
            } else {
                to = lpm_lpm_put(&l, s, word, token, bits, (u8 *)&value, &pkt);
                CHECK((to == NULL) == (want != 0));
                CHECK(!to || mr_load32(to) == value);
            }
            if (want)
                break;
            for (u32 i = 0; !p; i++)
                if (!all[i].used) {
                    p = &all[i];
                    used++;
                }
            memcpy(p->address, address, sizeof(address));
            p->bits = bits;
            p->value = value;
            p->used = 1;
            break;
        case 4:
            p = bits <= 8 * address_bytes ? exactly(all, address, bits) : NULL;
            want = bits > 8 * address_bytes ? mr_errno(EINVAL) : p ? 0 : mr_errno(ENOENT);
            if (bpf)
                CHECK(lpm_map_delete_elem(&l, s, word, token, &pkt) == want);
            else if (draw(2))
                CHECK((u64)(s64)lpm_remove(&l, s, key, 0) == want);
            else
                CHECK(lpm_lpm_delete(&l, s, word, token, bits, &pkt) == (want == 0));
            if (p) {
                p->used = 0;
                used--;
            }
            break;
        }
        if (step % 1024 == 0 || step + 1 == steps) {
            u64 cursor = 0, n = 0;

            move(&l, s);
            check_structure(&l, s);
            while (lpm_next(&l, s, &cursor, key, got, 0) == 0) {
                memset(address, 0, sizeof(address));
                memcpy(address, key + 4, address_bytes);
                CHECK(exactly(all, address, mr_load32(key)) &&
                      exactly(all, address, mr_load32(key))->value == mr_load32(got));
                n++;
            }
            CHECK(n == used && lpm_count(&l, s, 0) == used && lpm_used(&l, s, 0) == used);
        }
    }
    lpm_destroy(&l, s);
}

/* Capacity is exact in the worst case: prefixes that all need a fork. */
static void full(void)
{
    static const struct shape s = { .key_bytes = 4, .value_bytes = 4, .capacity = 1024 };
    struct mr_packet pkt = { 0 };
    struct lpm l;
    u64 key;

    CHECK(lpm_create(&l, &s, &check_config, NULL) == 0);
    for (int round = 0; round < 2; round++) {
        for (u32 i = 0; i < 1024; i++) {
            key = __builtin_bswap32(i << 22);
            CHECK(lpm_lpm_put(&l, &s, &key, 0, 32, (u8 *)&i, &pkt));
        }
        CHECK(l.trie.used_nodes == 2047);
        key = 0x01000000; /* 0.0.0.1 */
        CHECK(!lpm_lpm_put(&l, &s, &key, 0, 32, (u8 *)&key, &pkt));
        CHECK(!lpm_lpm_put(&l, &s, &key, 0, 0, (u8 *)&key, &pkt));
        for (u32 i = 0; i < 1024; i++) {
            u8 *value;

            key = __builtin_bswap32(i << 22);
            value = lpm_lpm_get(&l, &s, &key, lpm_token(&l, &s, &key), &pkt);
            CHECK(value && mr_load32(value) == i);
            CHECK(lpm_lpm_delete(&l, &s, &key, 0, 32, &pkt) == 1);
        }
        CHECK(l.trie.used_nodes == 0 && l.trie.top == MR_NONE);
    }
    lpm_destroy(&l, &s);
}

static void refused_declarations(void)
{
    struct shape s = { .key_bytes = 4, .value_bytes = 4, .capacity = 4, .flags = 1 };
    struct lpm l;

    CHECK(lpm_create(&l, &s, &check_config, NULL) == -EINVAL); /* prefixlen alone */
    s.key_bytes = 261;
    CHECK(lpm_create(&l, &s, &check_config, NULL) == -EINVAL);
    s.key_bytes = 8;
    s.capacity = 0;
    CHECK(lpm_create(&l, &s, &check_config, NULL) == -EINVAL);
    s.capacity = 1ull << 31;
    CHECK(lpm_create(&l, &s, &check_config, NULL) == -E2BIG);
}

int main(void)
{
    static const u32 bytes[] = { 1, 2, 3, 4, 8, 9, 16, 17, 64, 256 };

    for (u32 i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
        for (int bpf = 0; bpf < 2; bpf++) {
            random_operations(bytes[i], 40, bpf, 4000);
            random_operations(bytes[i], 400, bpf, bytes[i] > 16 ? 3000 : 8000);
        }
    full();
    refused_declarations();
    return check_report();
}
