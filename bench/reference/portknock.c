/* nfs/portknock by hand. */
#include "reference.h"

struct mr_instance {
    struct hash sources;
};

static const struct shape shape = {.key_bytes = 4, .value_bytes = 4, .capacity = CAPACITY};

static int create(struct mr_instance *self, const struct mr_config *config)
{
    return hash_create(&self->sources, &shape, config, NULL);
}

static void destroy(struct mr_instance *self) { hash_destroy(&self->sources, &shape); }

/* The TCP header of an IPv4 packet. */
MR_INLINE const u8 *tcp(const struct mr_packet *pkt)
{
    const u8 *ip = pkt->data + 14;

    if (pkt->end - pkt->data < 34 || mr_load16(pkt->data + 12) != BE16(0x0800))
        return NULL;
    u32 header = (ip[0] & 15) * 4u;
    if (ip[0] >> 4 != 4 || header < 20 || BE16(mr_load16(ip + 2)) < header + 20)
        return NULL;
    if (ip[9] != 6 || mr_load16(ip + 6) & BE16(0x1fff))
        return NULL;
    return ip + header + 20 <= pkt->end ? ip + header : NULL;
}

MR_INLINE void run(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
    const u8 *header = tcp(pkt);

    if (!header) {
        drop(pkt, 0);
        return;
    }
    u64 key = mr_load32(pkt->data + 26);
    u64 token = slot && slot->valid ? slot->token : hash_token(&self->sources, &shape, &key);
    u16 port = BE16(mr_load16(header + 2));
    u32 *state = (u32 *)hash_map_lookup_elem(&self->sources, &shape, &key, token, pkt);

    if (!state) {
        u32 first = 1;

        if (port == 100)
            hash_map_update_elem(&self->sources, &shape, &key, token, (u8 *)&first, 0, pkt);
        drop(pkt, 0);
        return;
    }
    if (*state != 3) {
        if (port == 100 + *state)
            *state += 1;
        else
            *state = port == 100;
    }
    if (*state == 3)
        forward(pkt, pkt->port);
    else
        drop(pkt, 0);
}

MR_INLINE struct slot prefetch(struct mr_instance *self, const struct mr_packet *pkt)
{
    if (!tcp(pkt))
        return (struct slot){0};
    u64 key = mr_load32(pkt->data + 26);
    u64 token = hash_token(&self->sources, &shape, &key);

    hash_prefetch(&self->sources, &shape, token);
    return (struct slot){token, 1};
}

MR_INLINE u64 touch(struct mr_instance *self, u64 token)
{
    return hash_prefetch_entry(&self->sources, &shape, token);
}

MR_INLINE int cold(const struct mr_instance *self) { return hash_cold(&self->sources, &shape); }

REFERENCE(cold, prefetch, touch, run, ageless)
