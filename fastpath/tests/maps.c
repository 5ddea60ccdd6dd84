/* array_of_maps and hash_of_maps: which map is where, and that maps which were made end exactly once. */
#include "../state/array_of_maps.h"
#include "../state/hash_of_maps.h"
#include "check.h"

static u64 alive; /* maps that were made and have not ended */

static void drop(struct mr_map *map)
{
    if (map->number != MAPS_OWN)
        return;
    free(map->object);
    alive--;
}

static struct mr_map named(u32 number)
{
    static u8 objects[8][8];

    if (number != MAPS_OWN)
        return (struct mr_map){ objects[number % 8], number, number };
    alive++;
    return (struct mr_map){ malloc(8), 7, MAPS_OWN };
}

/* `keys` keys are drawn, of which `holds` at most can have a map; those of an array are below it. */
#define AGAINST_MODEL(KIND, KEYS, IS_ARRAY, ...)                                                     \
    do {                                                                                             \
        static const struct shape s = { .value_bytes = 4, __VA_ARGS__ };                             \
        struct mr_packet pkt = { 0 };                                                                \
        struct KIND object;                                                                          \
        u32 model[KEYS] = { 0 }; /* 0: none */                                                       \
        u64 used = 0, visited = 0, cursor = 0;                                                       \
        u8 key[16] = { 0 }, value[4];                                                                \
        struct mr_map *map;                                                                          \
                                                                                                     \
        CHECK(KIND##_create(&object, &s, &check_config, NULL) == 0);                                 \
        for (u64 step = 0; step < 20000; step++) {                                                   \
            u64 n = draw(KEYS), word[2] = { n, 0 };                                                  \
            u32 number = draw(2) ? MAPS_OWN : 1 + (u32)draw(7);                                      \
            int fits = IS_ARRAY ? n < s.capacity : model[n] || used < s.capacity;                    \
            u8 *p;                                                                                   \
                                                                                                     \
            mr_store32(key, (u32)n);                                                                 \
            switch (draw(3)) {                                                                       \
            case 0:                                                                                  \
                CHECK(KIND##_hold(&object, &s, key, named(number), drop, 0) == (fits ? 0 : -E2BIG));  \
                if (fits) {                                                                          \
                    used += !model[n];                                                               \
                    model[n] = number;                                                               \
                }                                                                                    \
                break;                                                                               \
            case 1:                                                                                  \
                CHECK(KIND##_take(&object, &s, key, drop, 0) == (model[n] ? 0 : -ENOENT));           \
                used -= model[n] != 0;                                                               \
                model[n] = 0;                                                                        \
                break;                                                                               \
            case 2:                                                                                  \
                p = KIND##_map_lookup_elem(&object, &s, word, KIND##_token(&object, &s, word), &pkt); \
                CHECK((p != NULL) == (model[n] != 0));                                               \
                if (p) {                                                                             \
                    const struct shape own = maps_shape(&s, mr_map(p));                              \
                                                                                                     \
                    CHECK(mr_map(p)->number == model[n] && mr_map(p)->object);                       \
                    CHECK(own.capacity == (model[n] == MAPS_OWN ? 7 : model[n]));                    \
                }                                                                                    \
                CHECK(KIND##_get(&object, &s, key, value, 0) == (p ? 0 : -ENOENT));                  \
                CHECK(!p || mr_load32(value) == model[n]);                                           \
                break;                                                                               \
            }                                                                                        \
            CHECK(step % 64 || KIND##_count(&object, &s, 0) == used);                                \
        }                                                                                            \
        while (!KIND##_next(&object, &s, &cursor, key, value, 0)) {                                  \
            CHECK(mr_load32(key) < KEYS && mr_load32(value) == model[mr_load32(key)]);               \
            visited++;                                                                               \
        }                                                                                            \
        CHECK(visited == used && used > 0);                                                          \
        cursor = 0;                                                                                  \
        while ((map = KIND##_each(&object, &s, &cursor, key, UINT64_MAX)))                           \
            drop(map);                                                                               \
        CHECK(alive == 0);                                                                           \
        KIND##_destroy(&object, &s);                                                                 \
    } while (0)

int main(void)
{
    AGAINST_MODEL(array_of_maps, 12, 1, .key_bytes = 4, .capacity = 9);
    AGAINST_MODEL(hash_of_maps, 60, 0, .key_bytes = 4, .capacity = 40);
    AGAINST_MODEL(hash_of_maps, 20, 0, .key_bytes = 13, .capacity = 1);
    AGAINST_MODEL(hash_of_maps, 60, 0, .key_bytes = 16, .capacity = 64);
    return check_report();
}
