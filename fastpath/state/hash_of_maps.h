/* hash_of_maps: maps by key. Serves BPF's HASH_OF_MAPS.
 *
 * Contract: maps.h. At most `capacity` keys have a map; nothing else is an entry.
 *
 * Cost and memory: hash.h, with values of 16 bytes.
 */
#ifndef MR_HASH_OF_MAPS_H
#define MR_HASH_OF_MAPS_H

#include "hash.h"
#include "maps.h"

struct hash_of_maps {
    struct hash hash;
};

MR_INLINE u64 hash_of_maps_bytes(const struct shape *s)
{
    const struct shape stored = maps_stored(s);

    return hash_bytes(&stored);
}

static inline int hash_of_maps_create(struct hash_of_maps *h, const struct shape *s,
                                      const struct mr_config *config, const u8 *initial)
{
    const struct shape stored = maps_stored(s);

    return hash_create(&h->hash, &stored, config, initial);
}

static inline void hash_of_maps_destroy(struct hash_of_maps *h, const struct shape *s)
{
    const struct shape stored = maps_stored(s);

    hash_destroy(&h->hash, &stored);
}

MR_INLINE u64 hash_of_maps_token(const struct hash_of_maps *h, const struct shape *s, const u64 *key)
{
    return hash_token(&h->hash, s, key);
}

MR_INLINE u8 *hash_of_maps_map_lookup_elem(struct hash_of_maps *h, const struct shape *s, const u64 *key,
                                           u64 token, struct mr_packet *pkt)
{
    const struct shape stored = maps_stored(s);

    return hash_map_lookup_elem(&h->hash, &stored, key, token, pkt);
}

/* ---- control ---- */

/* The element of a key, NULL when it has no map. */
static inline struct mr_map *hash_of_maps_element(struct hash_of_maps *h, const struct shape *s,
                                                  const u8 *key, u64 now)
{
    const struct shape stored = maps_stored(s);
    u64 word[MR_KEY_WORDS_MAX];
    u8 *entry;

    mr_pad_key(word, key, s->key_bytes);
    entry = hash_find(&h->hash, &stored, word, hash_token(&h->hash, s, word), now);
    return entry ? mr_map(table_value(&stored, entry, hash_head(&stored))) : NULL;
}

static inline int hash_of_maps_hold(struct hash_of_maps *h, const struct shape *s, const u8 *key,
                                    struct mr_map map, maps_drop_fn *drop, u64 now)
{
    const struct shape stored = maps_stored(s);
    const struct mr_map none = {0};

    if (!hash_of_maps_element(h, s, key, now))
        hash_set(&h->hash, &stored, key, (const u8 *)&none, now);
    return maps_put(hash_of_maps_element(h, s, key, now), map, drop);
}

static inline int hash_of_maps_take(struct hash_of_maps *h, const struct shape *s, const u8 *key,
                                    maps_drop_fn *drop, u64 now)
{
    const struct shape stored = maps_stored(s);
    struct mr_map *map = hash_of_maps_element(h, s, key, now);

    if (!map)
        return -ENOENT;
    drop(map);
    return hash_remove(&h->hash, &stored, key, now);
}

/* The next element and its key; NULL at the end. */
static inline struct mr_map *hash_of_maps_each(struct hash_of_maps *h, const struct shape *s, u64 *cursor,
                                               u8 *key, u64 now)
{
    const struct shape stored = maps_stored(s);
    struct mr_map map;

    if (hash_next(&h->hash, &stored, cursor, key, (u8 *)&map, now))
        return NULL;
    return hash_of_maps_element(h, s, key, now);
}

static inline u64 hash_of_maps_count(struct hash_of_maps *h, const struct shape *s, u64 now)
{
    const struct shape stored = maps_stored(s);

    return hash_count(&h->hash, &stored, now);
}

static inline int hash_of_maps_get(struct hash_of_maps *h, const struct shape *s, const u8 *key, u8 *value,
                                   u64 now)
{
    return maps_number(hash_of_maps_element(h, s, key, now), value);
}

static inline int hash_of_maps_next(struct hash_of_maps *h, const struct shape *s, u64 *cursor, u8 *key,
                                    u8 *value, u64 now)
{
    return maps_number(hash_of_maps_each(h, s, cursor, key, now), value);
}

#endif
