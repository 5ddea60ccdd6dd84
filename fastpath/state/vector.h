/* vector: the handlers' VECTOR, elements by a 64-bit index.
 *
 * Contract. All `capacity` elements are there from the start, zero; `vector_at` beyond the last gives
 * null. Nothing is ever full, nothing expires. Control sees indices as keys of `key_bytes`.
 *
 * Cost: a multiplication by a constant, and the element's line. Memory: elements.h; noted: and that of notes.h.
 */
#ifndef MR_VECTOR_H
#define MR_VECTOR_H

#include "elements.h"
#include "notes.h"

struct vector {
    struct elements elements;
    struct notes notes;
    u8 key[8]; /* of the piece that `changes` hands out */
};

MR_INLINE u64 vector_bytes(const struct shape *s) { return elements_bytes(s); }

static inline int vector_create(struct vector *v, const struct shape *s, const struct mr_config *config,
                                const u8 *initial)
{
    int error = elements_create(&v->elements, s);

    (void)config;
    (void)initial;
    if (error)
        return error;
    error = notes_create(&v->notes, s);
    if (error)
        elements_destroy(&v->elements, s);
    return error;
}

static inline void vector_destroy(struct vector *v, const struct shape *s)
{
    elements_destroy(&v->elements, s);
    notes_destroy(&v->notes, s);
}

MR_INLINE u64 vector_behind(const struct vector *v, const struct shape *s, const u8 *p, s64 least)
{
    return elements_behind(&v->elements, s, p, least);
}

/* The token is the index; `key` points to it as a 64-bit word. */
MR_INLINE u64 vector_token(const struct vector *v, const struct shape *s, const u64 *key)
{
    (void)v;
    (void)s;
    return key[0];
}

MR_INLINE void vector_prefetch(const struct vector *v, const struct shape *s, u64 token)
{
    elements_prefetch(&v->elements, s, token);
}

MR_INLINE u64 vector_prefetch_entry(const struct vector *v, const struct shape *s, u64 token)
{
    (void)v;
    (void)s;
    return token;
}

MR_INLINE int vector_cold(const struct vector *v, const struct shape *s)
{
    (void)v;
    return elements_cold(s);
}

MR_INLINE u8 *vector_vector_at(struct vector *v, const struct shape *s, u64 index,
                               struct mr_packet *pkt)
{
    (void)pkt;
    return elements_at(&v->elements, s, index);
}

static inline u64 vector_count(struct vector *v, const struct shape *s, u64 now)
{
    (void)v;
    (void)now;
    return s->capacity;
}

static inline int vector_get(struct vector *v, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    (void)now;
    return elements_get(&v->elements, s, mr_number(s, key), value);
}

static inline int vector_set(struct vector *v, const struct shape *s, const u8 *key, const u8 *value,
                             u64 now)
{
    u64 index = mr_number(s, key);
    int error = elements_set(&v->elements, s, index, value);

    (void)now;
    if (!error)
        notes_add(&v->notes, s, (u32)index, 0);
    return error;
}

static inline int vector_remove(struct vector *v, const struct shape *s, const u8 *key, u64 now)
{
    (void)v;
    (void)s;
    (void)key;
    (void)now;
    return -EINVAL;
}

static inline int vector_next(struct vector *v, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                              u64 now)
{
    (void)now;
    return elements_next(&v->elements, s, cursor, key, value);
}

/* ---- changes ---- */

/* A value that `p` points into is written. */
MR_INLINE void vector_written(struct vector *v, const struct shape *s, const u8 *p)
{
    notes_add(&v->notes, s, (u32)((u64)(p - v->elements.data) / elements_stride(s)), 0);
}

static inline int vector_noted_piece(struct vector *v, const struct shape *s, u32 index, struct mr_saved *piece)
{
    *piece = (struct mr_saved){ .what = MR_SAVED_ENTRY, .place = index, .due = UINT64_MAX };
    mr_number_out(s, v->key, index);
    piece->key = v->key;
    piece->value = elements_at(&v->elements, s, index);
    return 1;
}

MR_INLINE void vector_noted_prefetch(const struct vector *v, const struct shape *s, u32 index)
{
    elements_prefetch(&v->elements, s, index);
}

NOTES_CHANGES(vector)

/* ---- save and load ---- */

static inline int vector_save(struct vector *v, const struct shape *s, mr_saved_fn *fn, void *context)
{
    return elements_save(&v->elements, s, fn, context);
}

static inline int vector_list(struct vector *v, const struct shape *s, u64 from, u64 to, mr_saved_fn *fn, void *context)
{
    return elements_list(&v->elements, s, from, to, fn, context);
}

static inline int vector_load(struct vector *v, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    (void)now;
    return elements_load(&v->elements, s, piece);
}

#endif
