/* What a C programmer writes first: linear probing over entries that hold their keys, at most half
 * full, no prefetching. The baseline that `state/hash.h` is held against. It offers the functions of
 * a `hash` that the references use, so that each can be built over either; entries are never removed,
 * an expired one is overwritten by its own key.
 */
#ifndef OPEN_ADDRESSING_H
#define OPEN_ADDRESSING_H

#include "base.h"

struct open {
    struct mr_secret secret;
    u8 *slab; /* [used or stamp][key][value] a slot */
    u64 mask;
    u64 used;
};

MR_INLINE u64 open_stride(const struct shape *s)
{
    return 8 + mr_round_up(s->key_bytes, 8) + mr_round_up(s->value_bytes, 8);
}

MR_INLINE u64 open_slots(const struct shape *s) { return mr_power_of_two(2 * s->capacity); }

static inline int open_create(struct open *o, const struct shape *s, const struct mr_config *config,
                              const u8 *initial)
{
    (void)initial;
    o->secret = mr_secret(config->hash_seed);
    o->mask = open_slots(s) - 1;
    o->used = 0;
    o->slab = mr_map_memory(open_slots(s) * open_stride(s));
    return o->slab ? 0 : -ENOMEM;
}

static inline void open_destroy(struct open *o, const struct shape *s)
{
    mr_unmap_memory(o->slab, open_slots(s) * open_stride(s));
}

MR_INLINE u64 open_token(const struct open *o, const struct shape *s, const u64 *key)
{
    return mr_hash(key, mr_words(s->key_bytes), &o->secret);
}

/* The slot with this key, or the vacant one where it would be. The stamp is never 0 in a used slot. */
MR_INLINE u64 *open_slot(const struct open *o, const struct shape *s, const u64 *key, u64 token)
{
    for (u64 i = token & o->mask;; i = (i + 1) & o->mask) {
        u64 *slot = (u64 *)(o->slab + i * open_stride(s));

        if (!slot[0] || mr_words_equal(slot + 1, key, mr_words(s->key_bytes)))
            return slot;
    }
}

MR_INLINE u8 *open_value(const struct shape *s, u64 *slot)
{
    return (u8 *)(slot + 1) + mr_round_up(s->key_bytes, 8);
}

MR_INLINE u64 open_now(const struct shape *s, const struct mr_packet *pkt)
{
    return s->expire_after && pkt->time ? pkt->time : 1;
}

MR_INLINE u8 *open_map_get(struct open *o, const struct shape *s, const u64 *key, u64 token,
                           struct mr_packet *pkt)
{
    u64 *slot = open_slot(o, s, key, token);

    if (!slot[0] || (s->expire_after && pkt->time - slot[0] >= s->expire_after))
        return NULL;
    return open_value(s, slot);
}

MR_INLINE u8 *open_map_refresh(struct open *o, const struct shape *s, const u64 *key, u64 token,
                               struct mr_packet *pkt)
{
    u64 *slot = open_slot(o, s, key, token);

    if (!slot[0] || (s->expire_after && pkt->time - slot[0] >= s->expire_after))
        return NULL;
    slot[0] = open_now(s, pkt);
    return open_value(s, slot);
}

MR_INLINE u8 *open_map_put(struct open *o, const struct shape *s, const u64 *key, u64 token,
                           const u8 *value, struct mr_packet *pkt)
{
    u64 *slot = open_slot(o, s, key, token);

    if (!slot[0]) {
        if (o->used == s->capacity)
            return NULL;
        o->used++;
        for (u32 i = 0; i < mr_words(s->key_bytes); i++)
            slot[1 + i] = key[i];
    }
    slot[0] = open_now(s, pkt);
    memcpy(open_value(s, slot), value, s->value_bytes);
    return open_value(s, slot);
}

MR_INLINE u8 *open_map_lookup_elem(struct open *o, const struct shape *s, const u64 *key, u64 token,
                                   struct mr_packet *pkt)
{
    u64 *slot = open_slot(o, s, key, token);

    (void)pkt;
    return slot[0] ? open_value(s, slot) : NULL;
}

MR_INLINE u64 open_map_update_elem(struct open *o, const struct shape *s, const u64 *key, u64 token,
                                   const u8 *value, u64 flags, struct mr_packet *pkt)
{
    (void)flags;
    return open_map_put(o, s, key, token, value, pkt) ? 0 : mr_errno(E2BIG);
}

MR_INLINE void open_prefetch(const struct open *o, const struct shape *s, u64 token)
{
    (void)o;
    (void)s;
    (void)token;
}

MR_INLINE u64 open_prefetch_entry(const struct open *o, const struct shape *s, u64 token)
{
    open_prefetch(o, s, token);
    return token;
}

MR_INLINE void open_age(struct open *o, const struct shape *s, u64 now)
{
    (void)o;
    (void)s;
    (void)now;
}

MR_INLINE int open_cold(const struct open *o, const struct shape *s)
{
    (void)o;
    (void)s;
    return 0;
}

#endif
