/* nfs/cl by hand. */
#include "flow.h"
#include "state/sketch.h"

enum { BAD_HEADER = 1, LATER_FRAGMENT, OVER_LIMIT, TABLE_FULL };

struct mr_instance {
    struct hash flows;
    struct sketch opened;
    u32 limit;
};

static const struct shape shape = {
    .key_bytes = 40, .value_bytes = 8, .capacity = CAPACITY, .expire_after = 60000000000ull};

static const struct shape pairs = {
    .key_bytes = 32, .capacity = 16384, .rows = 5, .window = 60000000000ull};

static int create(struct mr_instance *self, const struct mr_config *config)
{
    int error = hash_create(&self->flows, &shape, config, NULL);

    self->limit = 100;
    return error ? error : sketch_create(&self->opened, &pairs, config, NULL);
}

static void destroy(struct mr_instance *self) 
{
    hash_destroy(&self->flows, &shape);
    sketch_destroy(&self->opened, &pairs);
}

MR_INLINE void run(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
    u64 key[5], token, pair, session = 0;

    if (pkt->port == WAN) {
        forward(pkt, LAN);
        return;
    }
    switch (flow(pkt, 0, key)) {
    case NONE:
    case CARRIED:
        forward(pkt, WAN);
        return;
    case BAD:
        drop(pkt, BAD_HEADER);
        return;
    case FRAGMENT:
        drop(pkt, LATER_FRAGMENT);
        return;
    case OWN:
        break;
    }
    token = slot && slot->valid ? slot->token : hash_token(&self->flows, &shape, key);
    if (hash_map_refresh(&self->flows, &shape, key, token, pkt)) {
        forward(pkt, WAN);
        return;
    }
    pair = sketch_token(&self->opened, &pairs, key);
    if (sketch_sketch_count(&self->opened, &pairs, key, pair, pkt) >= self->limit) {
        drop(pkt, OVER_LIMIT);
    } else if (!hash_map_put(&self->flows, &shape, key, token, (u8 *)&session, pkt)) {
        drop(pkt, TABLE_FULL);
    } else {
        sketch_sketch_add(&self->opened, &pairs, key, pair, 1, pkt);
        forward(pkt, WAN);
    }
}

MR_INLINE struct slot prefetch(struct mr_instance *self, const struct mr_packet *pkt)
{
    u64 key[5], token;

    if (pkt->port == WAN || flow(pkt, 0, key) != OWN)
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
