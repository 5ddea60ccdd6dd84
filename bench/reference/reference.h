/* What the hand-written functions of this folder share: the passes over a burst, and reading headers
 * the way a C programmer does. Each file is a whole module (fastpath/abi.h) and does what its namesake in
 * nfs/ does with any packet: bench/src/agreement.rs tests it over captures and mutants of them, and
 * `make bench` asserts it of the packets that it measures.
 *
 * The harness defines CAPACITY (entries of the function's table).
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "context.h"
#ifdef OPEN_ADDRESSING
#include "open_addressing.h"
#define hash open
#define hash_create open_create
#define hash_destroy open_destroy
#define hash_token open_token
#define hash_prefetch open_prefetch
#define hash_prefetch_entry open_prefetch_entry
#define hash_cold open_cold
#define hash_age open_age
#define hash_map_get open_map_get
#define hash_map_refresh open_map_refresh
#define hash_map_put open_map_put
#define hash_map_lookup_elem open_map_lookup_elem
#define hash_map_update_elem open_map_update_elem
#else
#include "state/hash.h"
#endif

#ifndef CAPACITY
#define CAPACITY 65536
#endif

#define BE16(x) ((u16)((x) << 8 | (x) >> 8))

enum { LAN, WAN };

/* What the first pass keeps for the last. */
struct slot {
    u64 token;
    u32 valid;
};

#define BURST_MAX 1024

/* The headers of the packet that comes a few after this one. */
MR_INLINE void fetch_ahead(struct mr_packet *const *packet, u32 i, u32 n)
{
    if (i + 4 < n)
        __builtin_prefetch(packet[i + 4]->data);
}

/* First pass: the key and its hash, touch the bucket. Second: touch the entry. Third: the function. */
#define REFERENCE(cold, prefetch, touch, run, age)                                                          \
    static void burst(struct mr_instance *self, struct mr_packet *const *packet, u32 n)             \
    {                                                                                              \
        struct slot slot[BURST_MAX];                                                               \
                                                                                                   \
        age(self, packet, n);                                                                      \
        if (n > BURST_MAX || !cold(self)) {                                                        \
            for (u32 i = 0; i < n; i++) {                                                          \
                fetch_ahead(packet, i, n);                                                         \
                run(self, packet[i], NULL);                                                        \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (u32 i = 0; i < n; i++) {                                                              \
            fetch_ahead(packet, i, n);                                                             \
            slot[i] = prefetch(self, packet[i]);                                                      \
        }                                                                                          \
        for (u32 i = 0; i < n; i++)                                                                \
            if (slot[i].valid)                                                                     \
                slot[i].token = touch(self, slot[i].token);                                        \
        for (u32 i = 0; i < n; i++)                                                                \
            run(self, packet[i], &slot[i]);                                                        \
    }                                                                                              \
                                                                                                   \
    static void burst_plain(struct mr_instance *self, struct mr_packet *const *packet, u32 n)       \
    {                                                                                              \
        age(self, packet, n);                                                                      \
        for (u32 i = 0; i < n; i++)                                                                \
            run(self, packet[i], NULL);                                                            \
    }                                                                                              \
                                                                                                   \
    MODULE(burst, burst_plain)

#define MODULE(fast, plain)                                                                        \
    static void (*const bursts[])(struct mr_instance *, struct mr_packet *const *, u32) = {fast};    \
    static void (*const bursts_plain[])(struct mr_instance *, struct mr_packet *const *,           \
                                        u32) = {plain};                                            \
    static const struct mr_module module = {                                                       \
        .abi = MR_ABI,                                                                             \
        .programs = 1,                                                                             \
        .instance_bytes = sizeof(struct mr_instance),                                              \
        .instance_align = _Alignof(struct mr_instance),                                            \
        .create = create,                                                                          \
        .destroy = destroy,                                                                        \
        .burst = bursts,                                                                           \
        .burst_plain = bursts_plain,                                                               \
    };                                                                                             \
    __attribute__((visibility("default"))) const struct mr_module *millrace_module(void);           \
    const struct mr_module *millrace_module(void) { return &module; }

/* For tables that do not expire. */
MR_INLINE void ageless(struct mr_instance *self, struct mr_packet *const *packet, u32 n)
{
    (void)self;
    (void)packet;
    (void)n;
}

MR_INLINE void forward(struct mr_packet *pkt, u32 port)
{
    pkt->fate = MR_FORWARD;
    pkt->out = port;
}

MR_INLINE void drop(struct mr_packet *pkt, u32 reason)
{
    pkt->fate = MR_DROP;
    pkt->out = reason;
}

/* Offset of the network header behind up to two tags, and its type; 0 when the frame is too short. */
MR_INLINE u32 network(const struct mr_packet *pkt, u16 *type)
{
    u64 length = (u64)(pkt->end - pkt->data);
    u32 at = 14;

    if (length < 14)
        return 0;
    *type = mr_load16(pkt->data + 12);
    for (int tags = 0; tags < 2 && (*type == BE16(0x8100) || *type == BE16(0x88a8)); tags++) {
        if (length < at + 4)
            return 0;
        *type = mr_load16(pkt->data + at + 2);
        at += 4;
    }
    return at;
}

/* The IPv4 header at an offset if it is one: version, lengths, checksum. Sets its length. */
MR_INLINE const u8 *ipv4(const struct mr_packet *pkt, u32 at, u32 *header)
{
    const u8 *ip = pkt->data + at;
    u64 length = (u64)(pkt->end - pkt->data), sum = 0;

    if (length < at + 20 || ip[0] >> 4 != 4)
        return NULL;
    *header = (ip[0] & 15) * 4u;
    u16 total = BE16(mr_load16(ip + 2));
    if (*header < 20 || total < *header || at + total > length)
        return NULL;
    for (u32 i = 0; i < 20; i += 4)
        sum += mr_load32(ip + i);
    for (u32 i = 20; i < *header; i += 4)
        sum += mr_load32(ip + i);
    return sum % 0xffff == 0 ? ip : NULL;
}

#endif
