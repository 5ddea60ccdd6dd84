/* routes: the routing table that bpf_fib_lookup and bpf_check_mtu ask. Not declared by programs: one that
 * calls such a helper has one, `.routes`. The host fills it (docs/routes.md); entries are laid out in
 * routes_table.h.
 *
 * Contract. `fib_lookup` and `check_mtu`: routes_lookup.h. At capacity: `set` answers -ENOSPC for another
 * hop, -E2BIG for another neighbour; ports are numbered from 1 to ROUTES_PORTS, others are -EINVAL.
 */
#ifndef MR_ROUTES_H
#define MR_ROUTES_H

#include "routes_lookup.h"

MR_INLINE u64 routes_bytes(const struct shape *s)
{
    const struct shape n = routes_neighbour_shape(s);

    return mr_mapped_bytes(routes_part(s)) + hash_bytes(&n);
}

static inline int routes_create(struct routes *r, const struct shape *s, const struct mr_config *config,
                                const u8 *initial)
{
    const struct shape t = routes_trie_shape(s), n = routes_neighbour_shape(s);
    u8 *memory;
    int error;

    *r = (struct routes){0};
    if (s->capacity == 0 || s->key_bytes != sizeof(struct routes_key) ||
        s->value_bytes != sizeof(struct routes_value))
        return -EINVAL;
    if (s->capacity > MR_CAPACITY_MAX / 2)
        return -E2BIG;
    error = hash_create(&r->neighbours, &n, config, initial);
    if (error)
        return error;
    memory = mr_map_memory(routes_part(s));
    if (!memory) {
        hash_destroy(&r->neighbours, &n);
        return -ENOMEM;
    }
    r->port = (struct routes_port *)mr_take(&memory, ROUTES_PORTS * sizeof(struct routes_port));
    r->hop = (struct routes_hop *)mr_take(&memory, s->capacity * sizeof(struct routes_hop));
    lpm_trie_create(&r->four, &t, ROUTES_FORM_4, memory);
    memory += lpm_trie_part(&t, ROUTES_FORM_4);
    lpm_trie_create(&r->six, &t, ROUTES_FORM_6, memory);
    for (u32 i = 0; i < s->capacity; i++)
        r->hop[i].next = i + 1 < s->capacity ? i + 1 : MR_NONE;
    return 0;
}

/* The ports are the first part of the mapping. */
static inline void routes_destroy(struct routes *r, const struct shape *s)
{
    const struct shape n = routes_neighbour_shape(s);

    mr_unmap_memory(r->port, routes_part(s));
    hash_destroy(&r->neighbours, &n);
    *r = (struct routes){0};
}

/* ---- control, between bursts ---- */

struct routes_place {
    struct lpm_trie *trie;
    struct lpm_form form;
    u64 word[3];
    u32 bits;
};

/* Where a route's prefix stands; 0, or an error. A table that is not there is added if `add`. */
static inline int routes_place(struct routes *r, const struct routes_key *key, int add, struct routes_place *at)
{
    u32 most = key->family == 4 ? 32 : 128, id = routes_table_id(key->family, key->number);
    u32 slot = routes_slot(r, id);

    if ((key->family != 4 && key->family != 6) || key->bits > most)
        return -EINVAL;
    if (slot == MR_NONE) {
        if (!add)
            return -ENOENT;
        if (r->tables == ROUTES_TABLES)
            return -ENOSPC;
        slot = r->tables++;
        r->table[slot] = id;
    }
    at->bits = 8 + key->bits;
    at->form = key->family == 4 ? ROUTES_FORM_4 : ROUTES_FORM_6;
    at->trie = key->family == 4 ? &r->four : &r->six;
    if (key->family == 4)
        at->word[0] = routes_word_4(slot, key->address);
    else
        routes_words_6(at->word, slot, key->address);
    return 0;
}

/* The first hop of exactly this prefix, or MR_NONE. */
static inline u32 routes_first(const struct shape *s, const struct routes_place *at)
{
    const struct shape t = routes_trie_shape(s);
    u32 node = lpm_exact(at->trie, at->form, at->word, at->bits);

    return node == MR_NONE ? MR_NONE : mr_load32(lpm_value(at->trie, &t, lpm_node(at->trie, at->form, node)->value));
}

static inline void routes_free_hops(struct routes *r, u32 hop)
{
    while (hop != MR_NONE) {
        u32 next = r->hop[hop].next;

        r->hop[hop].live = 0;
        r->hop[hop].next = r->free_hop;
        r->free_hop = hop;
        hop = next;
    }
}

static inline u32 routes_take_hop(struct routes *r, const struct routes_key *key, const struct routes_value *value)
{
    u32 hop = r->free_hop;

    r->free_hop = r->hop[hop].next;
    r->hop[hop] = (struct routes_hop){ .key = *key, .value = *value, .next = MR_NONE, .live = 1 };
    return hop;
}

static inline int routes_set_route(struct routes *r, const struct shape *s, const struct routes_key *key,
                                   const struct routes_value *value)
{
    const struct shape t = routes_trie_shape(s);
    struct routes_place at;
    u32 first, last, hops = 1, index;
    int error = routes_place(r, key, 1, &at);

    if (error)
        return error;
    first = routes_first(s, &at);
    if (key->hop > 0) {
        if (first == MR_NONE)
            return -EINVAL;
        for (last = first; r->hop[last].next != MR_NONE; last = r->hop[last].next)
            hops++;
        if (key->hop != hops)
            return -EINVAL;
        if (r->free_hop == MR_NONE)
            return -ENOSPC;
        r->hop[last].next = routes_take_hop(r, key, value);
        return 0;
    }
    if (first == MR_NONE) {
        /* A stored prefix has at least one hop, so a free hop means a free prefix. */
        if (r->free_hop == MR_NONE)
            return -ENOSPC;
        index = lpm_insert(at.trie, &t, at.form, at.word, at.bits);
        mr_allow(lpm_value(at.trie, &t, index), t.value_bytes);
        mr_store32(lpm_value(at.trie, &t, index), routes_take_hop(r, key, value));
        return 0;
    }
    routes_free_hops(r, r->hop[first].next);
    r->hop[first].value = *value;
    r->hop[first].next = MR_NONE;
    return 0;
}

static inline void routes_neighbour_key(const struct routes_key *key, u8 *to)
{
    u64 word[3] = { (u64)key->family << 32 | key->number, 0, 0 };

    memcpy(word + 1, key->address, key->family == 4 ? 4 : 16);
    memcpy(to, word, sizeof(word));
}

static inline int routes_set(struct routes *r, const struct shape *s, const u8 *key_bytes, const u8 *value_bytes,
                             u64 now)
{
    const struct shape n = routes_neighbour_shape(s);
    struct routes_key key;
    struct routes_value value;
    u8 neighbour[24], mac[8] = { 0 };

    memcpy(&key, key_bytes, sizeof(key));
    memcpy(&value, value_bytes, sizeof(value));
    switch (key.what) {
    case ROUTES_PORT:
        if (key.number - 1 >= ROUTES_PORTS)
            return -EINVAL;
        r->port[key.number - 1] =
            (struct routes_port){ .known = 1, .flags = value.flags, .mtu = value.mtu, .mtu6 = value.mtu6 };
        memcpy(r->port[key.number - 1].mac, value.mac, 6);
        return 0;
    case ROUTES_ROUTE:
        return routes_set_route(r, s, &key, &value);
    case ROUTES_NEIGHBOUR:
        if (key.family != 4 && key.family != 6)
            return -EINVAL;
        routes_neighbour_key(&key, neighbour);
        memcpy(mac, value.mac, 6);
        return hash_set(&r->neighbours, &n, neighbour, mac, now);
    default:
        return -EINVAL;
    }
}

static inline int routes_remove(struct routes *r, const struct shape *s, const u8 *key_bytes, u64 now)
{
    const struct shape t = routes_trie_shape(s), n = routes_neighbour_shape(s);
    struct routes_place at;
    struct routes_key key;
    u8 neighbour[24];
    int error;
    u32 first;

    memcpy(&key, key_bytes, sizeof(key));
    switch (key.what) {
    case ROUTES_PORT:
        if (key.number - 1 >= ROUTES_PORTS || !r->port[key.number - 1].known)
            return -ENOENT;
        r->port[key.number - 1] = (struct routes_port){ 0 };
        return 0;
    case ROUTES_ROUTE:
        error = routes_place(r, &key, 0, &at);
        first = error ? MR_NONE : routes_first(s, &at);
        if (first == MR_NONE)
            return -ENOENT;
        if (key.hop != 0)
            return -EINVAL; /* a route goes as a whole */
        routes_free_hops(r, first);
        lpm_erase(at.trie, &t, at.form, at.word, at.bits);
        return 0;
    case ROUTES_NEIGHBOUR:
        routes_neighbour_key(&key, neighbour);
        return hash_remove(&r->neighbours, &n, neighbour, now);
    default:
        return -EINVAL;
    }
}

static inline void routes_port_out(const struct routes *r, u32 index, u8 *key_bytes, u8 *value_bytes)
{
    struct routes_key key = { .what = ROUTES_PORT, .number = index + 1 };
    struct routes_value value = { .flags = r->port[index].flags,
                                  .mtu = r->port[index].mtu,
                                  .mtu6 = r->port[index].mtu6 };

    memcpy(value.mac, r->port[index].mac, 6);
    memcpy(key_bytes, &key, sizeof(key));
    memcpy(value_bytes, &value, sizeof(value));
}

static inline int routes_get(struct routes *r, const struct shape *s, const u8 *key_bytes, u8 *value_bytes, u64 now)
{
    const struct shape n = routes_neighbour_shape(s);
    struct routes_value value = { 0 };
    struct routes_place at;
    struct routes_key key;
    u8 neighbour[24], ignored[24], mac[8];
    u32 hop;

    memcpy(&key, key_bytes, sizeof(key));
    switch (key.what) {
    case ROUTES_PORT:
        if (key.number - 1 >= ROUTES_PORTS || !r->port[key.number - 1].known)
            return -ENOENT;
        routes_port_out(r, key.number - 1, ignored, value_bytes);
        return 0;
    case ROUTES_ROUTE:
        if (routes_place(r, &key, 0, &at))
            return -ENOENT;
        hop = routes_first(s, &at);
        for (u32 i = 0; i < key.hop && hop != MR_NONE; i++)
            hop = r->hop[hop].next;
        if (hop == MR_NONE)
            return -ENOENT;
        memcpy(value_bytes, &r->hop[hop].value, sizeof(value));
        return 0;
    case ROUTES_NEIGHBOUR:
        routes_neighbour_key(&key, neighbour);
        if (hash_get(&r->neighbours, &n, neighbour, mac, now))
            return -ENOENT;
        memcpy(value.mac, mac, 6);
        memcpy(value_bytes, &value, sizeof(value));
        return 0;
    default:
        return -ENOENT;
    }
}

static inline u64 routes_count(struct routes *r, const struct shape *s, u64 now)
{
    const struct shape n = routes_neighbour_shape(s);
    u64 count = hash_count(&r->neighbours, &n, now);

    for (u32 i = 0; i < ROUTES_PORTS; i++)
        count += r->port[i].known;
    for (u32 i = 0; i < s->capacity; i++)
        count += r->hop[i].live;
    return count;
}

/* Ports, hops by their place, neighbours: the cursor counts through all three. */
static inline int routes_next(struct routes *r, const struct shape *s, u64 *cursor, u8 *key_bytes, u8 *value_bytes,
                              u64 now)
{
    const struct shape n = routes_neighbour_shape(s);
    struct routes_key key = { .what = ROUTES_NEIGHBOUR };
    struct routes_value value = { 0 };
    u8 neighbour[24], mac[8];
    u64 within;

    for (; *cursor < ROUTES_PORTS; ++*cursor) {
        if (!r->port[*cursor].known)
            continue;
        routes_port_out(r, (u32)*cursor, key_bytes, value_bytes);
        ++*cursor;
        return 0;
    }
    for (; *cursor < ROUTES_PORTS + s->capacity; ++*cursor) {
        const struct routes_hop *h = &r->hop[*cursor - ROUTES_PORTS];

        if (!h->live)
            continue;
        memcpy(key_bytes, &h->key, sizeof(h->key));
        memcpy(value_bytes, &h->value, sizeof(h->value));
        ++*cursor;
        return 0;
    }
    within = *cursor - ROUTES_PORTS - s->capacity;
    if (hash_next(&r->neighbours, &n, &within, neighbour, mac, now))
        return -ENOENT;
    *cursor = ROUTES_PORTS + s->capacity + within;
    key.number = mr_load32(neighbour);
    key.family = neighbour[4];
    memcpy(key.address, neighbour + 8, 16);
    memcpy(value.mac, mac, 6);
    memcpy(key_bytes, &key, sizeof(key));
    memcpy(value_bytes, &value, sizeof(value));
    return 0;
}

#endif
