/* global: a section of global variables (.data, .bss, .rodata, parameters): one value, no key.
 *
 * Contract. `global_base` is where it lies, for as long as the instance lives; it holds `initial`
 * from the start, or zeros. A section without bytes takes no memory and has a null base.
 *
 * Memory: value_bytes == 0 ? 0 : mapped(value_bytes), mapped as in base.h.
 */
#ifndef MR_GLOBAL_H
#define MR_GLOBAL_H

#include "../base.h"

struct global {
    u8 *data;
};

MR_INLINE u64 global_bytes(const struct shape *s) { return mr_mapped_bytes(s->value_bytes); }

static inline int global_create(struct global *g, const struct shape *s, const struct mr_config *config,
                                const u8 *initial)
{
    (void)config;
    g->data = NULL;
    if (s->value_bytes == 0)
        return 0;
    g->data = mr_map_memory(s->value_bytes);
    if (!g->data)
        return -ENOMEM;
    if (initial)
        memcpy(g->data, initial, s->value_bytes);
    mr_forbid(g->data + s->value_bytes, global_bytes(s) - s->value_bytes);
    return 0;
}

static inline void global_destroy(struct global *g, const struct shape *s)
{
    mr_unmap_memory(g->data, s->value_bytes);
    g->data = NULL;
}

MR_INLINE u8 *global_base(const struct global *g, const struct shape *s)
{
    (void)s;
    return g->data;
}

/* As elements_behind: there is one value. */
MR_INLINE u64 global_behind(const struct global *g, const struct shape *s, const u8 *p, s64 least)
{
    (void)s;
    return (u64)p - (u64)g->data - (u64)least;
}

static inline u64 global_count(struct global *g, const struct shape *s, u64 now)
{
    (void)g;
    (void)now;
    return s->value_bytes != 0;
}

static inline int global_get(struct global *g, const struct shape *s, const u8 *key, u8 *value, u64 now)
{
    (void)key;
    (void)now;
    if (!g->data)
        return -ENOENT;
    memcpy(value, g->data, s->value_bytes);
    return 0;
}

static inline int global_set(struct global *g, const struct shape *s, const u8 *key, const u8 *value,
                             u64 now)
{
    (void)key;
    (void)now;
    if (!g->data)
        return -ENOENT;
    memcpy(g->data, value, s->value_bytes);
    return 0;
}

static inline int global_remove(struct global *g, const struct shape *s, const u8 *key, u64 now)
{
    (void)g;
    (void)s;
    (void)key;
    (void)now;
    return -EINVAL;
}

static inline int global_next(struct global *g, const struct shape *s, u64 *cursor, u8 *key, u8 *value,
                              u64 now)
{
    if (*cursor || global_get(g, s, key, value, now))
        return -ENOENT;
    *cursor = 1;
    return 0;
}

/* ---- save and load ---- */

static inline int global_save(struct global *g, const struct shape *s, mr_saved_fn *fn, void *context)
{
    int error = fn(context, &(struct mr_saved){ .what = MR_SAVED_HEAD, .length = s->value_bytes });

    if (!error)
        error = mr_save_bytes(g->data, s->value_bytes, fn, context);
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

static inline int global_load(struct global *g, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    (void)now;
    switch (piece->what) {
    case MR_SAVED_HEAD:
        if (piece->length != s->value_bytes)
            return -EDOM;
        if (g->data)
            memset(g->data, 0, s->value_bytes);
        return 0;
    case MR_SAVED_BYTES:
        return g->data ? mr_load_bytes(g->data, s->value_bytes, piece) : -E2BIG;
    case MR_SAVED_END:
        return 0;
    default:
        return -EINVAL;
    }
}

#endif
