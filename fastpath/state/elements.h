/* A row of equal elements: what `array` and `vector` are.
 *
 * Memory: mapped(round_up(value_bytes, 8) * capacity), mapped as in base.h.
 */
#ifndef MR_ELEMENTS_H
#define MR_ELEMENTS_H

#include "../base.h"

struct elements {
    u8 *data;
};

MR_INLINE u64 elements_stride(const struct shape *s) { return mr_round_up(s->value_bytes, 8) + MR_GAP; }

MR_INLINE u64 elements_bytes(const struct shape *s)
{
    return mr_mapped_bytes(elements_stride(s) * s->capacity);
}

/* Elements are zero at start. */
MR_INLINE int elements_create(struct elements *e, const struct shape *s)
{
    e->data = NULL;
    if (s->value_bytes == 0 || s->capacity == 0)
        return -EINVAL;
    if (s->capacity > MR_CAPACITY_MAX)
        return -E2BIG;
    e->data = mr_map_memory(elements_stride(s) * s->capacity);
    if (!e->data)
        return -ENOMEM;
    for (u64 i = 0; MR_GAP && i < s->capacity; i++)
        mr_forbid(e->data + i * elements_stride(s) + s->value_bytes, elements_stride(s) - s->value_bytes);
    return 0;
}

MR_INLINE void elements_destroy(struct elements *e, const struct shape *s)
{
    mr_unmap_memory(e->data, elements_stride(s) * s->capacity);
    e->data = NULL;
}

MR_INLINE u8 *elements_at(const struct elements *e, const struct shape *s, u64 index)
{
    return index < s->capacity ? e->data + index * elements_stride(s) : NULL;
}

/* How far behind the byte `least` of an element an address lies (of a claim that is looked at, emit/c/codegen.h): less than
 * a stride, or, outside of all elements, more than any. */
MR_INLINE u64 elements_behind(const struct elements *e, const struct shape *s, const u8 *p, s64 least)
{
    u64 at = (u64)p - (u64)e->data - (u64)least;

    return at < elements_stride(s) * s->capacity ? at % elements_stride(s) : ~0ull;
}

/* An index beyond the end prefetches the end: a prefetch cannot fault, the address is just useless. */
MR_INLINE void elements_prefetch(const struct elements *e, const struct shape *s, u64 index)
{
    u64 at = index < s->capacity ? index : 0;

    mr_prefetch_range(e->data + at * elements_stride(s), s->value_bytes <= 256 ? s->value_bytes : 256);
}

MR_INLINE int elements_cold(const struct shape *s)
{
    return elements_stride(s) * s->capacity > MR_CACHE_BYTES;
}

static inline int elements_get(const struct elements *e, const struct shape *s, u64 index, u8 *value)
{
    const u8 *element = elements_at(e, s, index);

    if (!element)
        return -ENOENT;
    memcpy(value, element, s->value_bytes);
    return 0;
}

static inline int elements_set(struct elements *e, const struct shape *s, u64 index, const u8 *value)
{
    u8 *element = elements_at(e, s, index);

    if (!element)
        return -E2BIG;
    memcpy(element, value, s->value_bytes);
    return 0;
}

static inline int elements_next(const struct elements *e, const struct shape *s, u64 *cursor, u8 *key,
                                u8 *value)
{
    u64 index = *cursor;

    if (elements_get(e, s, index, value))
        return -ENOENT;
    mr_number_out(s, key, index);
    *cursor = index + 1;
    return 0;
}

/* ---- save and load: elements of zeros are left out ---- */

MR_INLINE int elements_blank(const struct elements *e, const struct shape *s, u64 index)
{
    const u8 *element = elements_at(e, s, index);
    u32 i = 0;

    for (; i + 8 <= s->value_bytes; i += 8)
        if (mr_load64(element + i))
            return 0;
    for (; i < s->value_bytes; i++)
        if (element[i])
            return 0;
    return 1;
}

static inline void elements_clear(struct elements *e, const struct shape *s)
{
    for (u64 i = 0; i < s->capacity; i++)
        memset(elements_at(e, s, i), 0, s->value_bytes);
}

static inline int elements_save(struct elements *e, const struct shape *s, mr_saved_fn *fn, void *context)
{
    int error = fn(context, &(struct mr_saved){ .what = MR_SAVED_HEAD, .length = s->capacity });

    for (u64 i = 0; !error && i < s->capacity; i++) {
        struct mr_saved piece = { .what = MR_SAVED_ENTRY, .place = i, .due = UINT64_MAX, .length = s->value_bytes };

        if (elements_blank(e, s, i))
            continue;
        piece.value = elements_at(e, s, i);
        error = fn(context, &piece);
    }
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

/* Elements by their places, with their indexes as keys. Nothing is remembered of those that were written since: who lists them for good does so at once. */
static inline int elements_list(struct elements *e, const struct shape *s, u64 from, u64 to, mr_saved_fn *fn, void *context)
{
    u8 key[8];
    int error = 0;

    to = to < s->capacity ? to : s->capacity;
    for (u64 i = from; !error && i < to; i++) {
        struct mr_saved piece = { .what = MR_SAVED_ENTRY, .place = i, .due = UINT64_MAX, .length = s->value_bytes };

        mr_number_out(s, key, i);
        piece.key = key;
        piece.value = elements_at(e, s, i);
        error = fn(context, &piece);
    }
    return error;
}

static inline int elements_load(struct elements *e, const struct shape *s, const struct mr_saved *piece)
{
    switch (piece->what) {
    case MR_SAVED_HEAD:
        elements_clear(e, s);
        return 0;
    case MR_SAVED_ENTRY:
        return elements_set(e, s, piece->place, piece->value) ? -E2BIG : 0;
    case MR_SAVED_END:
        return 0;
    default:
        return -EINVAL;
    }
}

#endif
