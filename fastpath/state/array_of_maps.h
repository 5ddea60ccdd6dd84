/* array_of_maps: maps by a 32-bit index. Serves BPF's ARRAY_OF_MAPS.
 *
 * Contract: maps.h. A lookup beyond the last element, or of one without a map, gives null.
 *
 * Cost: the element's line. Memory: bytes = mapped(16 * capacity).
 */
#ifndef MR_ARRAY_OF_MAPS_H
#define MR_ARRAY_OF_MAPS_H

#include "elements.h"
#include "maps.h"

struct array_of_maps {
    struct elements elements;
};

MR_INLINE u64 array_of_maps_bytes(const struct shape *s)
{
    const struct shape stored = maps_stored(s);

    return elements_bytes(&stored);
}

static inline int array_of_maps_create(struct array_of_maps *a, const struct shape *s,
                                       const struct mr_config *config, const u8 *initial)
{
    const struct shape stored = maps_stored(s);

    (void)config;
    (void)initial;
    return elements_create(&a->elements, &stored);
}

static inline void array_of_maps_destroy(struct array_of_maps *a, const struct shape *s)
{
    const struct shape stored = maps_stored(s);

    elements_destroy(&a->elements, &stored);
}

MR_INLINE struct mr_map *array_of_maps_at(const struct array_of_maps *a, const struct shape *s, u64 index)
{
    const struct shape stored = maps_stored(s);

    return mr_map(elements_at(&a->elements, &stored, index));
}

/* The token is the index. */
MR_INLINE u64 array_of_maps_token(const struct array_of_maps *a, const struct shape *s, const u64 *key)
{
    (void)a;
    (void)s;
    return (u32)key[0];
}

MR_INLINE u8 *array_of_maps_map_lookup_elem(struct array_of_maps *a, const struct shape *s, const u64 *key,
                                            u64 token, struct mr_packet *pkt)
{
    struct mr_map *map = array_of_maps_at(a, s, token);

    (void)key;
    (void)pkt;
    return map && map->object ? (u8 *)map : NULL;
}

/* ---- control ---- */

/* The element of a key, whether or not a map is there; NULL: there is no such element. */
static inline struct mr_map *array_of_maps_element(struct array_of_maps *a, const struct shape *s,
                                                   const u8 *key, u64 now)
{
    (void)now;
    return array_of_maps_at(a, s, mr_number(s, key));
}

static inline int array_of_maps_hold(struct array_of_maps *a, const struct shape *s, const u8 *key,
                                     struct mr_map map, maps_drop_fn *drop, u64 now)
{
    return maps_put(array_of_maps_element(a, s, key, now), map, drop);
}

static inline int array_of_maps_take(struct array_of_maps *a, const struct shape *s, const u8 *key,
                                     maps_drop_fn *drop, u64 now)
{
    struct mr_map *map = array_of_maps_element(a, s, key, now);

    if (!map || !map->object)
        return -ENOENT;
    drop(map);
    *map = (struct mr_map){0};
    return 0;
}

/* The next element that has a map, and its key; NULL at the end. */
static inline struct mr_map *array_of_maps_each(struct array_of_maps *a, const struct shape *s, u64 *cursor,
                                                u8 *key, u64 now)
{
    (void)now;
    while (*cursor < s->capacity) {
        struct mr_map *map = array_of_maps_at(a, s, *cursor);

        mr_number_out(s, key, *cursor);
        ++*cursor;
        if (map->object)
            return map;
    }
    return NULL;
}

static inline u64 array_of_maps_count(struct array_of_maps *a, const struct shape *s, u64 now)
{
    u64 cursor = 0, count = 0;
    u8 key[8];

    while (array_of_maps_each(a, s, &cursor, key, now))
        count++;
    return count;
}

static inline int array_of_maps_get(struct array_of_maps *a, const struct shape *s, const u8 *key, u8 *value,
                                    u64 now)
{
    return maps_number(array_of_maps_element(a, s, key, now), value);
}

static inline int array_of_maps_next(struct array_of_maps *a, const struct shape *s, u64 *cursor, u8 *key,
                                     u8 *value, u64 now)
{
    return maps_number(array_of_maps_each(a, s, cursor, key, now), value);
}

#endif
