/* nfs/policer by hand. */
#include "reference.h"

#define SCALE 1000000000ull
#define FORGET 60
#define RATE 1000000ull
#define BURST 100000ull

struct bucket {
    u64 tokens;
    u64 time;
};

struct mr_instance {
    struct hash buckets;
    u64 rate, full; /* settings are read at run time, as in the function */
};

static const struct shape shape = {
    .key_bytes = 16, .value_bytes = 16, .capacity = CAPACITY, .expire_after = FORGET * SCALE};

static int create(struct mr_instance *self, const struct mr_config *config)
{
    u64 most = ~0ull / SCALE;
    unsigned __int128 minute;

    self->rate = RATE;
    minute = (unsigned __int128)self->rate * FORGET;
    if (minute < most)
        most = (u64)minute;
    self->full = (BURST < most ? BURST : most) * SCALE;
    return hash_create(&self->buckets, &shape, config, NULL);
}

static void destroy(struct mr_instance *self) { hash_destroy(&self->buckets, &shape); }

enum { BAD_HEADER = 1, TABLE_FULL, OVER_RATE };
enum { NOT_IP, IP, BAD };

MR_INLINE int destination6(const struct mr_packet *pkt, u32 at, u64 *key)
{
    const u8 *ip = pkt->data + at;

    if (ip + 40 > pkt->end || ip[0] >> 4 != 6 || ip + 40 + BE16(mr_load16(ip + 4)) > pkt->end)
        return BAD;
    key[0] = mr_load64(ip + 24);
    key[1] = mr_load64(ip + 32);
    return IP;
}

MR_INLINE int destination(const struct mr_packet *pkt, u64 *key)
{
    u16 type;
    u32 header, at = network(pkt, &type);
    const u8 *ip;

    if (at && type == BE16(0x86dd))
        return destination6(pkt, at, key);
    if (!at || type != BE16(0x0800))
        return NOT_IP;
    ip = ipv4(pkt, at, &header);
    if (!ip)
        return BAD;
    key[0] = 0;
    key[1] = (u64)mr_load32(ip + 16) << 32 | 0xffff0000;
    return IP;
}

MR_INLINE void run(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
    u64 cost = (u64)(pkt->end - pkt->data) * SCALE;
    u64 key[2], token;

    if (pkt->port == LAN) {
        forward(pkt, WAN);
        return;
    }
    switch (destination(pkt, key)) {
    case NOT_IP:
        forward(pkt, LAN);
        return;
    case BAD:
        drop(pkt, BAD_HEADER);
        return;
    }
    token = slot && slot->valid ? slot->token : hash_token(&self->buckets, &shape, key);
    struct bucket *b = (struct bucket *)hash_map_refresh(&self->buckets, &shape, key, token, pkt);
    u64 full = self->full;

    if (!b) {
        struct bucket fresh = {full, pkt->time};

        b = (struct bucket *)hash_map_put(&self->buckets, &shape, key, token, (u8 *)&fresh, pkt);
        if (!b) {
            drop(pkt, TABLE_FULL);
            return;
        }
    } else if (pkt->time > b->time) {
        unsigned __int128 earned = (unsigned __int128)(pkt->time - b->time) * self->rate;

        b->tokens = earned >= full - b->tokens ? full : b->tokens + (u64)earned;
        b->time = pkt->time;
    }
    if (b->tokens < cost) {
        drop(pkt, OVER_RATE);
        return;
    }
    b->tokens -= cost;
    forward(pkt, LAN);
}

MR_INLINE struct slot prefetch(struct mr_instance *self, const struct mr_packet *pkt)
{
    u64 key[2], token;

    if (pkt->port == LAN || destination(pkt, key) != IP)
        return (struct slot){0};
    token = hash_token(&self->buckets, &shape, key);
    hash_prefetch(&self->buckets, &shape, token);
    return (struct slot){token, 1};
}

MR_INLINE u64 touch(struct mr_instance *self, u64 token)
{
    return hash_prefetch_entry(&self->buckets, &shape, token);
}

MR_INLINE int cold(const struct mr_instance *self) { return hash_cold(&self->buckets, &shape); }

MR_INLINE void age(struct mr_instance *self, struct mr_packet *const *packet, u32 n)
{
    if (n)
        hash_age(&self->buckets, &shape, packet[n - 1]->time);
}

REFERENCE(cold, prefetch, touch, run, age)
