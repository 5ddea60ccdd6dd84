/* What `routes` keeps, and how control names it: ports, routes with their next hops, neighbours.
 *
 * An entry is a key of 24 bytes and a value of 64, both as laid out below; numbers are little-endian,
 * addresses in network order, and what a kind of entry does not use is zero.
 *
 *     port        key: what, number = interface index            value: flags, mac, mtu, mtu6
 *     route       key: what, family, bits, hop, number = table   value: type, flags, via, source, ifindex,
 *                 id, address                                    mtu, metric, weight
 *     neighbour   key: what, family, number = interface index,   value: mac
 *                 address
 *
 * Routes to one prefix are one entry a hop, `hop` counting from 0; hop 0 replaces the route.
 *
 * Memory: ROUTES_PORTS ports, `capacity` hops, two tries of `capacity` prefixes (lpm_trie.h) and a table
 * of `capacity` neighbours (hash.h). A trie's address begins with a byte that stands for the routing
 * table, so that one trie serves all tables.
 */
#ifndef MR_ROUTES_TABLE_H
#define MR_ROUTES_TABLE_H

#include "hash.h"
#include "lpm_trie.h"

enum { ROUTES_PORT = 1, ROUTES_ROUTE = 2, ROUTES_NEIGHBOUR = 3 };

/* Of routes, as in linux/rtnetlink.h. */
enum {
    ROUTES_UNICAST = 1,
    ROUTES_BLACKHOLE = 6,
    ROUTES_UNREACHABLE = 7,
    ROUTES_PROHIBIT = 8,
    ROUTES_THROW = 9,
};

enum {
    ROUTES_FORWARD_4 = 1, /* of a port: what comes in by it is forwarded */
    ROUTES_FORWARD_6 = 2,
    ROUTES_ENCAPSULATED = 4, /* of a route: needs a tunnel header */
};

#define ROUTES_PORTS 1024u
#define ROUTES_TABLES 256u
#define ROUTES_MAIN 254u
#define ROUTES_LOCAL 255u
#define ROUTES_HOPS_MAX 255u

struct routes_key {
    u8 what;
    u8 family; /* 4 or 6 */
    u8 bits;   /* of the prefix */
    u8 hop;
    u32 number;
    u8 address[16];
};

struct routes_value {
    u8 type;
    u8 flags;
    u8 via_family;    /* 0: the destination is on the link; 4 or 6 */
    u8 source_family; /* 0: none is known */
    u32 ifindex;
    u32 mtu; /* of a port; of a route only if it is locked, else 0 */
    u32 mtu6;
    u32 metric;
    u32 weight; /* a route's flows are shared in proportion; 0: only if the lookup names the interface */
    u8 mac[6];
    u8 spare[2];
    u8 via[16];
    u8 source[16];
};

_Static_assert(sizeof(struct routes_key) == 24 && sizeof(struct routes_value) == 64, "crates/routes writes them");

struct routes_hop {
    struct routes_key key;
    struct routes_value value;
    u32 next; /* hop of the same route, or free hop; MR_NONE at the end */
    u32 live;
};

struct routes_port {
    u8 known;
    u8 flags;
    u8 mac[6];
    u32 mtu;
    u32 mtu6;
};

struct routes {
    struct lpm_trie four, six;
    struct hash neighbours;
    struct routes_port *port; /* by interface index less 1 */
    struct routes_hop *hop;
    u32 free_hop;
    u32 tables;
    u32 table[ROUTES_TABLES]; /* ids, by the byte that stands for them */
};

/* ---- shapes of the parts ---- */

#define ROUTES_FORM_4 ((struct lpm_form){ 1, 5 })
#define ROUTES_FORM_6 ((struct lpm_form){ 3, 17 })

/* A trie's value is the index of the first hop. */
MR_INLINE struct shape routes_trie_shape(const struct shape *s)
{
    return (struct shape){ .value_bytes = 4, .capacity = s->capacity };
}

MR_INLINE struct shape routes_neighbour_shape(const struct shape *s)
{
    return (struct shape){ .key_bytes = 24, .value_bytes = 8, .capacity = s->capacity };
}

MR_INLINE u64 routes_part(const struct shape *s)
{
    const struct shape t = routes_trie_shape(s);

    return mr_part(ROUTES_PORTS * sizeof(struct routes_port)) + mr_part(s->capacity * sizeof(struct routes_hop)) +
           lpm_trie_part(&t, ROUTES_FORM_4) + lpm_trie_part(&t, ROUTES_FORM_6);
}

/* ---- addresses ---- */

MR_INLINE u64 routes_word_4(u32 slot, const u8 *address)
{
    return (u64)slot << 56 | (u64)__builtin_bswap32(mr_load32(address)) << 24;
}

MR_INLINE void routes_words_6(u64 *word, u32 slot, const u8 *address)
{
    u64 high = __builtin_bswap64(mr_load64(address)), low = __builtin_bswap64(mr_load64(address + 8));

    word[0] = (u64)slot << 56 | high >> 8;
    word[1] = high << 56 | low >> 8;
    word[2] = low << 56;
}

/* The kernel keeps IPv4's local addresses in one trie with the main table, as long as nobody has added
 * rules of his own. */
MR_INLINE u32 routes_table_id(u8 family, u32 id) { return family == 4 && id == ROUTES_LOCAL ? ROUTES_MAIN : id; }

/* The byte that stands for a table, or MR_NONE. */
MR_INLINE u32 routes_slot(const struct routes *r, u32 id)
{
    for (u32 i = 0; i < r->tables; i++)
        if (r->table[i] == id)
            return i;
    return MR_NONE;
}

/* ---- finding ---- */

MR_INLINE const struct routes_hop *routes_at(const struct routes *r, u32 hop)
{
    return hop == MR_NONE ? NULL : &r->hop[hop];
}

/* Routes that are an answer by themselves; they have no next hop. */
MR_INLINE int routes_rejects(u8 type) { return type >= ROUTES_BLACKHOLE && type <= ROUTES_THROW; }

MR_INLINE const struct routes_hop *routes_longest(const struct routes *r, const struct shape *s, u8 family,
                                                  const u64 *word, u32 *limit)
{
    const struct shape t = routes_trie_shape(s);
    const struct lpm_form f = family == 4 ? ROUTES_FORM_4 : ROUTES_FORM_6;
    const struct lpm_trie *trie = family == 4 ? &r->four : &r->six;
    u32 value = lpm_longest(trie, &t, f, word, *limit);

    if (value == MR_NONE)
        return NULL;
    *limit = lpm_node(trie, f, trie->owner[value])->bits;
    return routes_at(r, mr_load32(lpm_value(trie, &t, value)));
}

/* The first hop of the longest matching route of a table; with `out`, an interface index, IPv4 takes only
 * routes with a hop by that interface, and gives this hop. */
MR_INLINE const struct routes_hop *routes_find(const struct routes *r, const struct shape *s, u8 family,
                                               u32 id, const u8 *address, u32 out)
{
    u32 slot = routes_slot(r, routes_table_id(family, id));
    u32 limit = 8 + (family == 4 ? 32 : 128);
    u64 word[3];

    if (slot == MR_NONE)
        return NULL;
    if (family == 4)
        word[0] = routes_word_4(slot, address);
    else
        routes_words_6(word, slot, address);
    for (;;) {
        const struct routes_hop *first = routes_longest(r, s, family, word, &limit);

        if (!first || !out || family == 6 || routes_rejects(first->value.type))
            return first;
        for (const struct routes_hop *h = first; h; h = routes_at(r, h->next))
            if (h->value.ifindex == out)
                return h;
        if (limit <= 8)
            return NULL;
        limit--;
    }
}

MR_INLINE const u8 *routes_neighbour(struct routes *r, const struct shape *s, u8 family, u32 ifindex,
                                     const u8 *address)
{
    const struct shape t = routes_neighbour_shape(s);
    u64 key[3] = { (u64)family << 32 | ifindex, 0, 0 };
    u8 *entry;

    memcpy(key + 1, address, family == 4 ? 4 : 16);
    entry = hash_find(&r->neighbours, &t, key, hash_token(&r->neighbours, &t, key), 0);
    return entry ? table_value(&t, entry, hash_head(&t)) : NULL;
}

#endif
