/* Maps whose values are maps: what `array_of_maps` and `hash_of_maps` have in common.
 *
 * Contract. To a program such a map is read-only (kernel/bpf/verifier.c check_map_func_compatibility): a
 * lookup gives the map that is there, or null. What it gets is the address of a `struct mr_map`, which says
 * where the inner map is; the kind and all of its shape but the capacity are the same for all of them and
 * known when code is emitted (`maps_shape` puts the capacity in).
 *
 * Which maps there are, the emitted module knows: they are the other objects of the program, by their
 * number, and those that the host makes. One of the latter belongs to the element it was made for, and ends
 * with it. Elements change between bursts only.
 *
 * Control, as the host sees it: a value is the number of a map, 4 bytes: that of an object of the program
 * from 1, or MAPS_OWN for one that was made; setting MAPS_OWN makes an empty one.
 */
#ifndef MR_MAPS_H
#define MR_MAPS_H

#include <stdlib.h>

#include "../base.h"

/* The number of every map that is no object of the program. */
#define MAPS_OWN 0xffffffffu

struct mr_map {
    u8 *object; /* struct KIND; NULL: there is none */
    u32 capacity;
    u32 number;
};

/* Ends a map that was made for an element; leaves objects of the program alone. */
typedef void maps_drop_fn(struct mr_map *);

MR_INLINE struct mr_map *mr_map(u8 *pointer) { return (struct mr_map *)pointer; }

/* The shape of a map of maps, as its elements lie in memory. */
MR_INLINE struct shape maps_stored(const struct shape *s)
{
    struct shape stored = *s;

    stored.value_bytes = sizeof(struct mr_map);
    return stored;
}

/* The shape of an inner map. */
MR_INLINE struct shape maps_shape(const struct shape *s, const struct mr_map *map)
{
    struct shape own = *s;

    own.capacity = map->capacity;
    return own;
}

MR_INLINE int maps_number(const struct mr_map *map, u8 *value)
{
    if (!map || !map->object)
        return -ENOENT;
    mr_store32(value, map->number);
    return 0;
}

/* Puts `map` into an element; NULL: there is no such element, and the map has no place. */
MR_INLINE int maps_put(struct mr_map *element, struct mr_map map, maps_drop_fn *drop)
{
    if (!element) {
        drop(&map);
        return -E2BIG;
    }
    if (element->object)
        drop(element);
    *element = map;
    return 0;
}

#endif
