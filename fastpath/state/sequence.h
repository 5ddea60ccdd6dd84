/* Values in a row that are put in at one end: what `queue` and `stack` have in common.
 *
 * Contract (kernel/bpf/queue_stack_maps.c). `capacity` values fit. `map_push_elem`: -EINVAL for flags but
 * 0 and BPF_EXIST (2); full: -E2BIG, or with BPF_EXIST the oldest value gives way. `map_pop_elem` and
 * `map_peek_elem`: -ENOENT when there is none, and the bytes that the caller offered are zeroed.
 *
 * Control. There is no key: `set` puts a value in, `get` looks at the one that would leave next, `next`
 * visits from the oldest on, so that putting in what was visited gives the same again.
 *
 * Cost: the value's line. Memory: elements.h.
 */
#ifndef MR_SEQUENCE_H
#define MR_SEQUENCE_H

#include "elements.h"

#define SEQUENCE_BPF_EXIST 2

struct sequence {
    struct elements elements;
    u64 first; /* the oldest value */
    u64 used;
};

static inline int sequence_create(struct sequence *q, const struct shape *s)
{
    q->first = 0;
    q->used = 0;
    return elements_create(&q->elements, s);
}

static inline void sequence_destroy(struct sequence *q, const struct shape *s)
{
    elements_destroy(&q->elements, s);
}

/* The value that came in as number n of those that are there, n <= used. */
MR_INLINE u8 *sequence_at(const struct sequence *q, const struct shape *s, u64 n)
{
    u64 at = q->first + n;

    return elements_at(&q->elements, s, at < s->capacity ? at : at - s->capacity);
}

MR_INLINE u64 sequence_push(struct sequence *q, const struct shape *s, const u8 *value, u64 flags)
{
    if (flags & ~(u64)SEQUENCE_BPF_EXIST)
        return mr_errno(EINVAL);
    if (q->used == s->capacity) {
        if (!flags)
            return mr_errno(E2BIG);
        q->first = q->first + 1 < s->capacity ? q->first + 1 : 0;
        q->used--;
    }
    memcpy(sequence_at(q, s, q->used), value, s->value_bytes);
    q->used++;
    return 0;
}

MR_INLINE void sequence_drop_first(struct sequence *q, const struct shape *s)
{
    q->first = q->first + 1 < s->capacity ? q->first + 1 : 0;
    q->used--;
}

/* Copies a value out, or zeros where there is none (`from` is NULL). */
MR_INLINE u64 sequence_take(const struct shape *s, const u8 *from, u8 *value)
{
    if (!from) {
        memset(value, 0, s->value_bytes);
        return mr_errno(ENOENT);
    }
    memcpy(value, from, s->value_bytes);
    return 0;
}

static inline int sequence_next(const struct sequence *q, const struct shape *s, u64 *cursor, u8 *value)
{
    if (*cursor >= q->used)
        return -ENOENT;
    memcpy(value, sequence_at(q, s, *cursor), s->value_bytes);
    ++*cursor;
    return 0;
}

/* ---- save and load: the oldest first ---- */

static inline int sequence_save(struct sequence *q, const struct shape *s, mr_saved_fn *fn, void *context)
{
    int error = fn(context, &(struct mr_saved){ .what = MR_SAVED_HEAD, .length = s->capacity });

    for (u64 i = 0; !error && i < q->used; i++) {
        struct mr_saved piece = { .what = MR_SAVED_ENTRY, .place = i, .due = UINT64_MAX, .length = s->value_bytes };

        piece.value = sequence_at(q, s, i);
        error = fn(context, &piece);
    }
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

static inline int sequence_load(struct sequence *q, const struct shape *s, const struct mr_saved *piece)
{
    switch (piece->what) {
    case MR_SAVED_HEAD:
        q->first = q->used = 0;
        return 0;
    case MR_SAVED_ENTRY:
        if (piece->place != q->used)
            return -EINVAL;
        return sequence_push(q, s, piece->value, 0) ? -E2BIG : 0;
    case MR_SAVED_END:
        return 0;
    default:
        return -EINVAL;
    }
}

/* The functions of a kind. It has two of its own before: `KIND_place`, which of the values that are there leaves next (at least one
 * is), and `KIND_drop`, which takes it out. */
#define SEQUENCE_KIND(kind)                                                                                             \
    struct kind {                                                                                                       \
        struct sequence sequence;                                                                                       \
    };                                                                                                                  \
                                                                                                                        \
    MR_INLINE u64 kind##_bytes(const struct shape *s) { return elements_bytes(s); }                                     \
                                                                                                                        \
    static inline int kind##_create(struct kind *q, const struct shape *s, const struct mr_config *config, const u8 *initial)\
    {                                                                                                                   \
        (void)config;                                                                                                   \
        (void)initial;                                                                                                  \
        return sequence_create(&q->sequence, s);                                                                        \
    }                                                                                                                   \
                                                                                                                        \
    static inline void kind##_destroy(struct kind *q, const struct shape *s) { sequence_destroy(&q->sequence, s); }     \
                                                                                                                        \
    MR_INLINE u8 *kind##_head(const struct kind *q, const struct shape *s)                                              \
    {                                                                                                                   \
        return q->sequence.used ? sequence_at(&q->sequence, s, kind##_place(&q->sequence)) : NULL;                      \
    }                                                                                                                   \
                                                                                                                        \
    MR_INLINE u64 kind##_map_push_elem(struct kind *q, const struct shape *s, const u8 *value, u64 flags,               \
                                       struct mr_packet *pkt)                                                           \
    {                                                                                                                   \
        (void)pkt;                                                                                                      \
        return sequence_push(&q->sequence, s, value, flags);                                                            \
    }                                                                                                                   \
                                                                                                                        \
    MR_INLINE u64 kind##_map_peek_elem(struct kind *q, const struct shape *s, u8 *value, struct mr_packet *pkt)         \
    {                                                                                                                   \
        (void)pkt;                                                                                                      \
        return sequence_take(s, kind##_head(q, s), value);                                                              \
    }                                                                                                                   \
                                                                                                                        \
    MR_INLINE u64 kind##_map_pop_elem(struct kind *q, const struct shape *s, u8 *value, struct mr_packet *pkt)          \
    {                                                                                                                   \
        const u8 *head = kind##_head(q, s);                                                                             \
                                                                                                                        \
        (void)pkt;                                                                                                      \
        if (head)                                                                                                       \
            kind##_drop(&q->sequence, s);                                                                               \
        return sequence_take(s, head, value);                                                                           \
    }                                                                                                                   \
                                                                                                                        \
    static inline u64 kind##_count(struct kind *q, const struct shape *s, u64 now)                                      \
    {                                                                                                                   \
        (void)s;                                                                                                        \
        (void)now;                                                                                                      \
        return q->sequence.used;                                                                                        \
    }                                                                                                                   \
                                                                                                                        \
    static inline u64 kind##_used(struct kind *q, const struct shape *s, u64 now) { return kind##_count(q, s, now); }   \
                                                                                                                        \
    static inline int kind##_get(struct kind *q, const struct shape *s, const u8 *key, u8 *value, u64 now)              \
    {                                                                                                                   \
        (void)key;                                                                                                      \
        (void)now;                                                                                                      \
        return (int)sequence_take(s, kind##_head(q, s), value);                                                         \
    }                                                                                                                   \
                                                                                                                        \
    static inline int kind##_set(struct kind *q, const struct shape *s, const u8 *key, const u8 *value, u64 now)        \
    {                                                                                                                   \
        (void)key;                                                                                                      \
        (void)now;                                                                                                      \
        return (int)sequence_push(&q->sequence, s, value, 0);                                                           \
    }                                                                                                                   \
                                                                                                                        \
    static inline int kind##_next(struct kind *q, const struct shape *s, u64 *cursor, u8 *key, u8 *value, u64 now)      \
    {                                                                                                                   \
        (void)key;                                                                                                      \
        (void)now;                                                                                                      \
        return sequence_next(&q->sequence, s, cursor, value);                                                           \
    }                                                                                                                   \
                                                                                                                        \
    static inline int kind##_save(struct kind *q, const struct shape *s, mr_saved_fn *fn, void *context)                \
    {                                                                                                                   \
        return sequence_save(&q->sequence, s, fn, context);                                                             \
    }                                                                                                                   \
                                                                                                                        \
    static inline int kind##_load(struct kind *q, const struct shape *s, const struct mr_saved *piece, u64 now)         \
    {                                                                                                                   \
        (void)now;                                                                                                      \
        return sequence_load(&q->sequence, s, piece);                                                                   \
    }

#endif
