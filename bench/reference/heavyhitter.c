/* nfs/heavyhitter by hand. The measured flows stay below the threshold. */
#include "reference.h"
#include "helpers/ringbuf_submit.h"
#include "state/ringbuf.h"

struct mr_instance {
    struct hash flows;
    struct ringbuf reports;
    u64 threshold; /* read at run time, as in the function */
};

struct report {
    u64 key[2];
    u64 bytes;
};

static const struct shape shape = {.key_bytes = 16, .value_bytes = 8, .capacity = CAPACITY};
static const struct shape reports = {.capacity = 1 << 20};

static int create(struct mr_instance *self, const struct mr_config *config)
{
    int error = hash_create(&self->flows, &shape, config, NULL);

    self->threshold = UINT64_MAX;
    return error ? error : ringbuf_create(&self->reports, &reports, config, NULL);
}

static void destroy(struct mr_instance *self)
{
    ringbuf_destroy(&self->reports, &reports);
    hash_destroy(&self->flows, &shape);
}

MR_INLINE int flow(const struct mr_packet *pkt, u64 *key)
{
    const u8 *ip = pkt->data + 14;
    u32 ports = 0;

    if (pkt->end - pkt->data < 34 || mr_load16(pkt->data + 12) != BE16(0x0800))
        return 0;
    u32 header = (ip[0] & 15) * 4u;
    if (ip[0] >> 4 != 4 || header < 20 || (ip[9] != 6 && ip[9] != 17))
        return 0;
    if (!(mr_load16(ip + 6) & BE16(0x1fff))) {
        if (ip + header + 4 > pkt->end || BE16(mr_load16(ip + 2)) < header + 4)
            return 0;
        ports = mr_load32(ip + header);
    }
    key[0] = mr_load64(ip + 12);
    key[1] = ports | (u64)ip[9] << 32;
    return 1;
}

MR_INLINE void run(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
    u64 size = (u64)(pkt->end - pkt->data);
    u64 key[2], token, before = 0;

    forward(pkt, pkt->port);
    if (!flow(pkt, key))
        return;
    token = slot && slot->valid ? slot->token : hash_token(&self->flows, &shape, key);
    u64 *bytes = (u64 *)hash_map_lookup_elem(&self->flows, &shape, key, token, pkt);

    if (bytes) {
        before = *bytes;
        *bytes += size;
    } else if (hash_map_update_elem(&self->flows, &shape, key, token, (u8 *)&size, 1, pkt)) {
        return;
    }
    if (before <= self->threshold && before + size > self->threshold) {
        struct report *report = (struct report *)ringbuf_ringbuf_reserve(
            &self->reports, &reports, sizeof(*report), 0, pkt);

        if (report) {
            *report = (struct report){{key[0], key[1]}, before + size};
            helper_ringbuf_submit((u8 *)report, 0, pkt);
        }
    }
}

MR_INLINE struct slot prefetch(struct mr_instance *self, const struct mr_packet *pkt)
{
    u64 key[2], token;

    if (!flow(pkt, key))
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

REFERENCE(cold, prefetch, touch, run, ageless)
