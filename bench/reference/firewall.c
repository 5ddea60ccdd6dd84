/* nfs/firewall by hand. */
#include "flow.h"

enum { BAD_HEADER = 1, LATER_FRAGMENT, NO_FLOW, TABLE_FULL };

struct mr_instance {
    struct hash flows;
};

static const struct shape shape = {
    .key_bytes = 40, .value_bytes = 8, .capacity = CAPACITY, .expire_after = 60000000000ull};

static int create(struct mr_instance *self, const struct mr_config *config)
{
    return hash_create(&self->flows, &shape, config, NULL);
}

static void destroy(struct mr_instance *self) { hash_destroy(&self->flows, &shape); }

MR_INLINE void run(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
    u64 key[5], token, session = 0;

    switch (flow(pkt, pkt->port == WAN, key)) {
    case NONE:
        forward(pkt, pkt->port ^ 1);
        return;
    case BAD:
        drop(pkt, BAD_HEADER);
        return;
    case FRAGMENT:
        drop(pkt, LATER_FRAGMENT);
        return;
    case CARRIED:
        /* The packet inside is one that the LAN sent. */
        if (pkt->port == WAN && !hash_map_get(&self->flows, &shape, key,
                                              hash_token(&self->flows, &shape, key), pkt))
            drop(pkt, NO_FLOW);
        else
            forward(pkt, pkt->port ^ 1);
        return;
    case OWN:
        break;
    }
    token = slot && slot->valid ? slot->token : hash_token(&self->flows, &shape, key);
    if (hash_map_refresh(&self->flows, &shape, key, token, pkt))
        forward(pkt, pkt->port ^ 1);
    else if (pkt->port == WAN)
        drop(pkt, NO_FLOW);
    else if (hash_map_put(&self->flows, &shape, key, token, (u8 *)&session, pkt))
        forward(pkt, pkt->port ^ 1);
    else
        drop(pkt, TABLE_FULL);
}

MR_INLINE struct slot prefetch(struct mr_instance *self, const struct mr_packet *pkt)
{
    u64 key[5], token;

    if (flow(pkt, pkt->port == WAN, key) != OWN)
        return (struct slot){0};
    token = hash_token(&self->flows, &shape, key);
    hash_prefetch(&self->flows, &shape, token);
    return (struct slot){token, 1};
}

MR_INLINE u64 touch(struct mr_instance *self, u64 token)
{
    return hash_prefetch_entry(&self->flows, &shape, token);
}

MR_INLINE int cold(const struct mr_instance *self) { return hash_cold(&self->flows, &shape); }

MR_INLINE void age(struct mr_instance *self, struct mr_packet *const *packet, u32 n)
{
    if (n)
        hash_age(&self->flows, &shape, packet[n - 1]->time);
}

REFERENCE(cold, prefetch, touch, run, age)
