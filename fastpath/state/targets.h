/* Targets of redirects by a 32-bit index: what `devmap`, `cpumap` and `xskmap` have in common. An element
 * whose first 32 bits are 0 is absent, as in the kernel, where writing such a value removes it
 * (kernel/bpf/devmap.c __dev_map_update_elem, cpumap.c cpu_map_update_elem). The host fills them; a
 * program cannot write. Memory: elements.h.
 */
#ifndef MR_TARGETS_H
#define MR_TARGETS_H

#include "../context.h"
#include "elements.h"

enum {
    TARGETS_ACTION = 3,            /* flags: the verdict when there is no target */
    TARGETS_BROADCAST = 1 << 3,    /* BPF_F_BROADCAST */
    TARGETS_NOT_INGRESS = 1 << 4,  /* BPF_F_EXCLUDE_INGRESS */
};

struct targets {
    struct elements elements;
};

/* Null if nothing is there. */
MR_INLINE u8 *targets_find(const struct targets *t, const struct shape *s, u64 index)
{
    u8 *element = elements_at(&t->elements, s, (u32)index);

    return element && mr_load32(element) ? element : NULL;
}

/* What __bpf_xdp_redirect_map (include/linux/filter.h) gives for a target that is there, or is not.
 * `to` is the port, or one of MR_TO_*. */
MR_INLINE u64 targets_result(struct mr_packet *pkt, int there, u64 flags, u32 to)
{
    pkt->redirect = there ? to : MR_NO_PORT;
    return there ? MR_XDP_REDIRECT : flags & TARGETS_ACTION;
}

/* The port of an interface index. */
MR_INLINE u32 targets_port(u32 ifindex)
{
    return ifindex - 1 < MR_TO_FIRST ? ifindex - 1 : MR_NO_PORT;
}

/* ---- control ---- */

static inline u64 targets_count(const struct targets *t, const struct shape *s)
{
    u64 count = 0;

    for (u64 i = 0; i < s->capacity; i++)
        count += targets_find(t, s, i) != NULL;
    return count;
}

static inline int targets_get(const struct targets *t, const struct shape *s, const u8 *key, u8 *value)
{
    const u8 *element = targets_find(t, s, mr_number(s, key));

    if (!element)
        return -ENOENT;
    memcpy(value, element, s->value_bytes);
    return 0;
}

/* The second half of an 8-byte value is a program to run on the way out, which nothing here does. */
static inline int targets_set(struct targets *t, const struct shape *s, const u8 *key, const u8 *value)
{
    if (s->value_bytes == 8 && mr_load32(value + 4))
        return -EINVAL;
    return elements_set(&t->elements, s, mr_number(s, key), value);
}

static inline int targets_remove(struct targets *t, const struct shape *s, const u8 *key)
{
    u8 *element = targets_find(t, s, mr_number(s, key));

    if (!element)
        return -ENOENT;
    memset(element, 0, s->value_bytes);
    return 0;
}

static inline int targets_next(const struct targets *t, const struct shape *s, u64 *cursor, u8 *key,
                               u8 *value)
{
    for (u64 i = *cursor; i < s->capacity; i++) {
        const u8 *element = targets_find(t, s, i);

        if (!element)
            continue;
        mr_number_out(s, key, i);
        memcpy(value, element, s->value_bytes);
        *cursor = i + 1;
        return 0;
    }
    *cursor = s->capacity;
    return -ENOENT;
}

/* What all kinds do alike, beside `KIND_redirect_map`. */
#define TARGETS_KIND(kind)                                                                                              \
    struct kind {                                                                                                       \
        struct targets targets;                                                                                         \
    };                                                                                                                  \
                                                                                                                        \
    MR_INLINE u64 kind##_bytes(const struct shape *s) { return elements_bytes(s); }                                     \
                                                                                                                        \
    static inline int kind##_create(struct kind *m, const struct shape *s, const struct mr_config *config, const u8 *initial)\
    {                                                                                                                   \
        (void)config;                                                                                                   \
        (void)initial;                                                                                                  \
        return elements_create(&m->targets.elements, s);                                                                \
    }                                                                                                                   \
                                                                                                                        \
    static inline void kind##_destroy(struct kind *m, const struct shape *s) { elements_destroy(&m->targets.elements, s); }\
                                                                                                                        \
    static inline u64 kind##_count(struct kind *m, const struct shape *s, u64 now)                                      \
    {                                                                                                                   \
        (void)now;                                                                                                      \
        return targets_count(&m->targets, s);                                                                           \
    }                                                                                                                   \
                                                                                                                        \
    static inline int kind##_get(struct kind *m, const struct shape *s, const u8 *key, u8 *value, u64 now)              \
    {                                                                                                                   \
        (void)now;                                                                                                      \
        return targets_get(&m->targets, s, key, value);                                                                 \
    }                                                                                                                   \
                                                                                                                        \
    static inline int kind##_set(struct kind *m, const struct shape *s, const u8 *key, const u8 *value, u64 now)        \
    {                                                                                                                   \
        (void)now;                                                                                                      \
        return targets_set(&m->targets, s, key, value);                                                                 \
    }                                                                                                                   \
                                                                                                                        \
    static inline int kind##_remove(struct kind *m, const struct shape *s, const u8 *key, u64 now)                      \
    {                                                                                                                   \
        (void)now;                                                                                                      \
        return targets_remove(&m->targets, s, key);                                                                     \
    }                                                                                                                   \
                                                                                                                        \
    static inline int kind##_next(struct kind *m, const struct shape *s, u64 *cursor, u8 *key, u8 *value, u64 now)      \
    {                                                                                                                   \
        (void)now;                                                                                                      \
        return targets_next(&m->targets, s, cursor, key, value);                                                        \
    }

/* Lookups by programs, of kinds that have them; the token is the index. */
#define TARGETS_LOOKUP(kind)                                                                                            \
    MR_INLINE u64 kind##_token(const struct kind *m, const struct shape *s, const u64 *key)                             \
    {                                                                                                                   \
        (void)m;                                                                                                        \
        (void)s;                                                                                                        \
        return (u32)key[0];                                                                                             \
    }                                                                                                                   \
                                                                                                                        \
    MR_INLINE u8 *kind##_map_lookup_elem(struct kind *m, const struct shape *s, const u64 *key, u64 token,              \
                                         struct mr_packet *pkt)                                                         \
    {                                                                                                                   \
        (void)token;                                                                                                    \
        (void)pkt;                                                                                                      \
        return targets_find(&m->targets, s, key[0]);                                                                    \
    }

#endif
