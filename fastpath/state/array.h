/* array: elements by a 32-bit index. Serves BPF's ARRAY and PERCPU_ARRAY (one instance is one CPU).
 *
 * Contract. All `capacity` elements are there from the start, zero. A lookup beyond the last gives
 * null. `map_update_elem`: -EINVAL for flags above BPF_EXIST, -E2BIG beyond the last element, -EEXIST
 * for BPF_NOEXIST, in this order; `map_delete_elem`: always -EINVAL. Nothing is ever full.
 *
 * Cost: a multiplication by a constant, and the element's line. Memory: elements.h, timers.h; noted: and that of notes.h.
 */
#ifndef MR_ARRAY_H
#define MR_ARRAY_H

#include "elements.h"
#include "notes.h"
#include "timer_helpers.h"

struct array {
    struct elements elements;
    struct timers timers;
    struct notes notes;
    u8 key[4]; /* of the piece that `changes` hands out */
};

MR_INLINE u64 array_bytes(const struct shape *s) { return elements_bytes(s) + timers_bytes(s); }

static inline int array_create(struct array *a, const struct shape *s, const struct mr_config *config,
                               const u8 *initial)
{
    int error;

    (void)config;
    (void)initial;
    *a = (struct array){0};
    error = elements_create(&a->elements, s);
    if (error)
        return error;
    error = timers_create(&a->timers, s);
    if (!error) {
        error = notes_create(&a->notes, s);
        if (error)
            timers_destroy(&a->timers, s);
    }
    if (error)
        elements_destroy(&a->elements, s);
    return error;
}

static inline void array_destroy(struct array *a, const struct shape *s)
{
    elements_destroy(&a->elements, s);
    timers_destroy(&a->timers, s);
    notes_destroy(&a->notes, s);
}

/* A value that `p` points into is written. */
MR_INLINE void array_written(struct array *a, const struct shape *s, const u8 *p)
{
    if (s->noted)
        notes_add(&a->notes, s, (u32)((u64)(p - a->elements.data) / elements_stride(s)), 0);
}

MR_INLINE u64 array_behind(const struct array *a, const struct shape *s, const u8 *p, s64 least)
{
    return elements_behind(&a->elements, s, p, least);
}

/* The token is the index. */
MR_INLINE u64 array_token(const struct array *a, const struct shape *s, const u64 *key)
{
    (void)a;
    (void)s;
    return (u32)key[0];
}

MR_INLINE void array_prefetch(const struct array *a, const struct shape *s, u64 token)
{
    elements_prefetch(&a->elements, s, token);
}

MR_INLINE u64 array_prefetch_entry(const struct array *a, const struct shape *s, u64 token)
{
    (void)a;
    (void)s;
    return token;
}

MR_INLINE int array_cold(const struct array *a, const struct shape *s)
{
    (void)a;
    return elements_cold(s);
}

MR_INLINE u8 *array_map_lookup_elem(struct array *a, const struct shape *s, const u64 *key, u64 token,
                                    struct mr_packet *pkt)
{
    (void)token;
    (void)pkt;
    return elements_at(&a->elements, s, (u32)key[0]);
}

/* A worker has its own CPU's values only. */
MR_INLINE u8 *array_map_lookup_percpu_elem(struct array *a, const struct shape *s, const u64 *key,
                                           u64 token, u64 cpu, struct mr_packet *pkt)
{
    return (u32)cpu == pkt->cpu ? array_map_lookup_elem(a, s, key, token, pkt) : NULL;
}

MR_INLINE u64 array_map_update_elem(struct array *a, const struct shape *s, const u64 *key, u64 token,
                                    const u8 *value, u64 flags, struct mr_packet *pkt)
{
    u8 *element = elements_at(&a->elements, s, (u32)key[0]);

    (void)token;
    (void)pkt;
    if (flags > 2)
        return mr_errno(EINVAL);
    if (!element)
        return mr_errno(E2BIG);
    if (flags == 1)
        return mr_errno(EEXIST);
    memcpy(element, value, s->value_bytes);
    notes_add(&a->notes, s, (u32)key[0], 0);
    timers_forget(&a->timers, s, (u32)key[0], element);
    return 0;
}

MR_INLINE u64 array_map_delete_elem(struct array *a, const struct shape *s, const u64 *key, u64 token,
                                    struct mr_packet *pkt)
{
    (void)a;
    (void)s;
    (void)key;
    (void)token;
    (void)pkt;
    return mr_errno(EINVAL);
}

MR_INLINE u8 *array_map_slot(struct array *a, const struct shape *s, u64 place, u8 *key,
                             struct mr_packet *pkt)
{
    (void)pkt;
    mr_number_out(s, key, place);
    return elements_at(&a->elements, s, place);
}

/* ---- timers ---- */

/* Which element a value is, by the address of its timer. */
MR_INLINE u64 array_place(const struct array *a, const struct shape *s, const u8 *timer)
{
    return (u64)(timer - a->elements.data) / elements_stride(s);
}

TIMER_HELPERS(array)

/* ---- control, between bursts ---- */

static inline u64 array_count(struct array *a, const struct shape *s, u64 now)
{
    (void)a;
    (void)now;
    return s->capacity;
}

static inline int array_get(struct array *a, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    (void)now;
    return elements_get(&a->elements, s, mr_number(s, key), value);
}

static inline int array_set(struct array *a, const struct shape *s, const u8 *key, const u8 *value,
                            u64 now)
{
    u64 index = mr_number(s, key);
    int error = elements_set(&a->elements, s, index, value);

    (void)now;
    if (!error) {
        notes_add(&a->notes, s, (u32)index, 0);
        timers_forget(&a->timers, s, index, elements_at(&a->elements, s, index));
    }
    return error;
}

static inline int array_remove(struct array *a, const struct shape *s, const u8 *key, u64 now)
{
    (void)a;
    (void)s;
    (void)key;
    (void)now;
    return -EINVAL;
}

static inline int array_next(struct array *a, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                             u64 now)
{
    (void)now;
    return elements_next(&a->elements, s, cursor, key, value);
}

/* ---- changes ---- */

static inline int array_noted_piece(struct array *a, const struct shape *s, u32 index, struct mr_saved *piece)
{
    *piece = (struct mr_saved){ .what = MR_SAVED_ENTRY, .place = index, .due = UINT64_MAX };
    mr_number_out(s, a->key, index);
    piece->key = a->key;
    piece->value = elements_at(&a->elements, s, index);
    return 1;
}

MR_INLINE void array_noted_prefetch(const struct array *a, const struct shape *s, u32 index)
{
    elements_prefetch(&a->elements, s, index);
}

NOTES_CHANGES(array)

/* ---- save and load ---- */

static inline int array_save(struct array *a, const struct shape *s, mr_saved_fn *fn, void *context)
{
    struct mr_saved head = { .what = MR_SAVED_HEAD, .length = s->capacity };
    int error;

    timers_save_head(&a->timers, s, &head);
    error = fn(context, &head);
    for (u64 i = 0; !error && i < s->capacity; i++) {
        struct mr_saved piece = { .what = MR_SAVED_ENTRY, .place = i, .length = s->value_bytes };

        timers_save(&a->timers, s, i, &piece);
        if (!piece.callback && elements_blank(&a->elements, s, i))
            continue;
        piece.value = elements_at(&a->elements, s, i);
        error = fn(context, &piece);
    }
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

static inline int array_list(struct array *a, const struct shape *s, u64 from, u64 to, mr_saved_fn *fn, void *context)
{
    return elements_list(&a->elements, s, from, to, fn, context);
}

static inline int array_load(struct array *a, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    (void)now;
    switch (piece->what) {
    case MR_SAVED_HEAD:
        elements_clear(&a->elements, s);
        timers_load_head(&a->timers, s, piece);
        return 0;
    case MR_SAVED_ENTRY:
        if (elements_set(&a->elements, s, piece->place, piece->value))
            return -E2BIG;
        return timers_load(&a->timers, s, piece->place, elements_at(&a->elements, s, piece->place), piece);
    case MR_SAVED_END:
        return 0;
    default:
        return -EINVAL;
    }
}

#endif
