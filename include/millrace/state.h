/* State that outlives a packet.
 *
 *     MAP(name, KEY, VALUE, .capacity = N, .expire_after = NS)
 *     VECTOR(name, VALUE, .capacity = N)
 *     ALLOCATOR(name, VALUE, .capacity = N, .first = NUMBER, .expire_after = NS)
 *     SKETCH(name, KEY, .rows = N, .capacity = COLUMNS, .window = NS)
 *     LPM(name, KEY, VALUE, .capacity = N)
 *     CLASSIFIER(name, KEY, .classes = N, .capacity = RULES)
 *
 * An object is passed as &name, keys and values as pointers to their types; another type is a
 * compile-time error at the author's line. A key must be initialised to its last byte: a struct that
 * would have padding needs it as named members, set to zero. Pointers to values may be written
 * through and hold until the handler returns or the entry goes.
 *
 * With .expire_after an entry is absent from the instant its age reaches the limit. `get` leaves the
 * age alone, `refresh` and `put` set it to zero. A full object refuses: it never evicts.
 */
#ifndef MILLRACE_STATE_H
#define MILLRACE_STATE_H

#include <millrace/object.h>

static void *(*const millrace_map_get)(void *, const void *) = (void *)0x10000;
static void *(*const millrace_map_refresh)(void *, const void *) = (void *)0x10001;
static void *(*const millrace_map_put)(void *, const void *, const void *) = (void *)0x10002;
static __u64 (*const millrace_map_delete)(void *, const void *) = (void *)0x10003;
static void *(*const millrace_vector_at)(void *, __u64) = (void *)0x10010;
static __s64 (*const millrace_allocator_lease)(void *, const void *) = (void *)0x10020;
static void *(*const millrace_allocator_get)(void *, __u64) = (void *)0x10021;
static void *(*const millrace_allocator_refresh)(void *, __u64) = (void *)0x10022;
static __u64 (*const millrace_allocator_free)(void *, __u64) = (void *)0x10023;
static __u64 (*const millrace_sketch_count)(void *, const void *) = (void *)0x10030;
static __u64 (*const millrace_sketch_add)(void *, const void *, __u64) = (void *)0x10031;
static void *(*const millrace_lpm_get)(void *, const void *) = (void *)0x10040;
static void *(*const millrace_lpm_put)(void *, const void *, __u64, const void *) = (void *)0x10041;
static __u64 (*const millrace_lpm_delete)(void *, const void *, __u64) = (void *)0x10042;
static __u64 (*const millrace_classify)(void *, const void *) = (void *)0x10060;

/* The arrays of no elements make clang keep the members of the types, so that reports name them. */
#define MILLRACE_STATE(name, KIND, K, V, ...)                                                  \
	static struct {                                                                        \
		K *key;                                                                        \
		V *value;                                                                      \
		struct millrace_object object;                                                 \
		K key_type[0];                                                                 \
		V value_type[0];                                                               \
	} name __attribute__((section("millrace/state"), used)) = {                            \
		.object = {                                                                    \
			.kind = KIND,                                                          \
			.key_bytes = sizeof(K),                                                \
			.value_bytes = sizeof(V),                                              \
			.options = { __VA_ARGS__ },                                            \
		},                                                                             \
	}

#define MAP(name, K, V, ...)    MILLRACE_STATE(name, MILLRACE_MAP, K, V, __VA_ARGS__)
#define VECTOR(name, V, ...)    MILLRACE_STATE(name, MILLRACE_VECTOR, __u32, V, __VA_ARGS__)
#define ALLOCATOR(name, V, ...) MILLRACE_STATE(name, MILLRACE_ALLOCATOR, __u32, V, __VA_ARGS__)
#define SKETCH(name, K, ...)    MILLRACE_STATE(name, MILLRACE_SKETCH, K, __u32, __VA_ARGS__)
#define LPM(name, K, V, ...)    MILLRACE_STATE(name, MILLRACE_LPM, K, V, __VA_ARGS__)
#define CLASSIFIER(name, K, ...) MILLRACE_STATE(name, MILLRACE_CLASSIFIER, K, __u32, __VA_ARGS__)

#define MILLRACE_VALUE(object) typeof((object)->value)
/* The key comes last: a literal like &(struct pair){ a, b } has commas of its own. */
#define MILLRACE_KEYED(object, call, ...)                                                      \
	({                                                                                     \
		const typeof(*(object)->key) *millrace_key = (__VA_ARGS__);                    \
		call;                                                                          \
	})

/* The value, or NULL. */
#define map_get(map, ...)                                                                      \
	MILLRACE_KEYED(map, (MILLRACE_VALUE(map))millrace_map_get((map), millrace_key),        \
		       __VA_ARGS__)
/* The value, its age now zero, or NULL. */
#define map_refresh(map, ...)                                                                  \
	MILLRACE_KEYED(map, (MILLRACE_VALUE(map))millrace_map_refresh((map), millrace_key),    \
		       __VA_ARGS__)
/* Stores a copy, over an older value if there is one; the stored value, or NULL: full. */
#define map_put(map, k, ...)                                                                   \
	({                                                                                     \
		const typeof(*(map)->key) *millrace_key = (k);                                 \
		const typeof(*(map)->value) *millrace_value = (__VA_ARGS__);                   \
		(MILLRACE_VALUE(map))millrace_map_put((map), millrace_key, millrace_value);    \
	})
/* map_put where there is no entry; one that is there is refreshed and keeps its value: it is not written, so that packets of
 * other cores that read it go on. The value that is there, or NULL: full. */
#define map_keep(map, k, ...)                                                                  \
	({                                                                                     \
		const typeof(*(map)->key) *millrace_wanted = (k);                              \
		MILLRACE_VALUE(map) millrace_kept = map_refresh(map, millrace_wanted);         \
		millrace_kept ? millrace_kept : map_put(map, millrace_wanted, __VA_ARGS__);    \
	})
/* Whether it was there. */
#define map_delete(map, ...) \
	MILLRACE_KEYED(map, (_Bool)millrace_map_delete((map), millrace_key), __VA_ARGS__)

/* The element, or NULL beyond the last. Elements begin as zeros. */
#define vector_at(vector, index) \
	((MILLRACE_VALUE(vector))millrace_vector_at((vector), (index)))

/* Leases a free number from .first to .first + .capacity - 1 and keeps a copy of the value with it.
 * Which one is not defined. -1: none is free. */
#define allocator_lease(allocator, ...)                                                        \
	({                                                                                     \
		const typeof(*(allocator)->value) *millrace_value = (__VA_ARGS__);             \
		millrace_allocator_lease((allocator), millrace_value);                         \
	})
/* The value kept with a leased number, or NULL when it is not leased. */
#define allocator_get(allocator, number) \
	((MILLRACE_VALUE(allocator))millrace_allocator_get((allocator), (number)))
/* The same, its age now zero. */
#define allocator_refresh(allocator, number) \
	((MILLRACE_VALUE(allocator))millrace_allocator_refresh((allocator), (number)))
/* Whether it was leased. */
#define allocator_free(allocator, number) \
	((_Bool)millrace_allocator_free((allocator), (number)))

/* How often a key was added since the window began: never less than the truth, at times more
 * (count-min: Cormode and Muthukrishnan, J. Algorithms 55(1), 2005). */
#define sketch_count(sketch, ...) \
	MILLRACE_KEYED(sketch, millrace_sketch_count((sketch), millrace_key), __VA_ARGS__)
/* Adds; the estimate afterwards. */
#define sketch_add(sketch, k, amount) \
	MILLRACE_KEYED(sketch, millrace_sketch_add((sketch), millrace_key, (amount)), k)

/* Keys are addresses in network byte order. The value of the longest prefix that matches, or NULL. */
#define lpm_get(lpm, ...)                                                                      \
	MILLRACE_KEYED(lpm, (MILLRACE_VALUE(lpm))millrace_lpm_get((lpm), millrace_key),        \
		       __VA_ARGS__)
/* Stores a copy for a prefix of `bits` bits; the stored value, or NULL: full, or too many bits. */
#define lpm_put(lpm, k, bits, ...)                                                             \
	({                                                                                     \
		const typeof(*(lpm)->key) *millrace_key = (k);                                 \
		const typeof(*(lpm)->value) *millrace_value = (__VA_ARGS__);                   \
		(MILLRACE_VALUE(lpm))millrace_lpm_put((lpm), millrace_key, (bits),             \
						      millrace_value);                         \
	})
/* Whether that very prefix was there. */
#define lpm_delete(lpm, k, bits) \
	MILLRACE_KEYED(lpm, (_Bool)millrace_lpm_delete((lpm), millrace_key, (bits)), k)

/* The class of the first rule that contains the key, 0 if none does; below .classes. Rules are set from outside (--map
 * name=FILE) by the key's fields: of __be types and arrays of bytes in network order, else in the machine's. */
#define classify(classifier, ...)                                                              \
	MILLRACE_KEYED(classifier, (__u32)millrace_classify((classifier), millrace_key), __VA_ARGS__)

#endif
