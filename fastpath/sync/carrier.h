/* carrier: the prefix form of a sequenced packet, read from bytes that came over a network.
 *
 *      0  destination address of a dummy Ethernet header; its last two bytes are the core
 *      6  source address; its last two bytes are the port by which the packet came
 *     12  Ethernet type 0x88b5 (IEEE 802, local experiments)
 *     14  version 1 in the upper four bits; flags: 1 the packet has a row, the newest; 2 a heartbeat, without a packet
 *     15  slots, 1 to 64
 *     16  bytes of a row, 1 to 64
 *     17  the slot of the oldest row, which is also the one that the next row takes: sequence mod slots
 *     18  sequence: the number of the newest row, from 1; 0 while there is none
 *     26  stamp of the packet, ns
 *     34  one bit a slot, the first slot's the lowest of the first byte: the row is a heartbeat's
 *      …  the slots; row n is in slot (n - 1) mod slots, a slot without a row is zero
 *      …  with a key, eight bytes: the tag, SipHash-2-4 of all before it (Aumasson, Bernstein: SipHash, INDOCRYPT 2012)
 *      …  the packet
 *
 * Numbers are big-endian. A row of a program that needs time holds the low 40 bits of it, big-endian, at a place that the
 * row's shape names; two rows in succession are at most 2^38 ns apart, so that the times follow from the stamp, newest first.
 * crates/steer/src/sequence/prefix.rs writes this and reads it by the same rules; docs/replication.md is its page.
 *
 * Any bytes may be handed in. What is no carrier of the expected shape is refused with the reason; nothing outside of the
 * bytes is read. Without a key that is all: other rows of the right shape, and other upper bits of a stamp, are taken. A link on
 * which others can send needs the key.
 */
#ifndef MR_SYNC_CARRIER_H
#define MR_SYNC_CARRIER_H

#include "../base.h"

#define CARRIER_TYPE 0x88b5u
#define CARRIER_VERSION 1u
#define CARRIER_TOUCH 1u
#define CARRIER_BEAT 2u
#define CARRIER_FIXED 34u
#define CARRIER_SLOTS_MAX 64u
#define CARRIER_ROW_MAX 64u
#define CARRIER_TIME_BYTES 5u
#define CARRIER_TIME_MASK ((1ull << 40) - 1)
/* The longest time between two rows in succession, ns. */
#define CARRIER_GAP (1ull << 38)
/* The last number of a row: the sequencer stops there, so that no number is given twice. */
#define CARRIER_LAST (~0ull - 1)
/* A row without a time. */
#define CARRIER_NO_TIME 0xffu

/* What replicas and sequencer agreed on before the first packet. */
struct carrier_shape {
    u8 slots;     /* 1 to 64 */
    u8 row_bytes; /* 1 to 64 */
    u8 time;      /* offset of the time in a row, or CARRIER_NO_TIME */
    u8 keyed;     /* there is a tag */
    u64 key[2];   /* of it, the first eight bytes and the second, little-endian */
};

/* The reasons to refuse bytes, in the order in which they are looked for; `Refusal` of crates/steer has the same. */
enum carrier_refusal {
    CARRIER_TAKEN,
    CARRIER_SHORT,    /* the bytes end before the prefix does */
    CARRIER_FOREIGN,  /* another Ethernet type or version */
    CARRIER_SHAPED,   /* another number of slots, or another size of rows */
    CARRIER_FORGED,   /* another tag than the key gives */
    CARRIER_FLAGS,    /* flags that are not defined, or that contradict each other, the sequence or the packet */
    CARRIER_NUMBER,   /* a sequence behind the last one */
    CARRIER_INDEX,    /* the oldest row is not where the sequence says */
    CARRIER_SLOT,     /* a slot without a row is not zero, or is marked as a heartbeat's */
    CARRIER_TIMES,    /* the times of rows are further apart than a sequencer lets them be, or before 0 */
    CARRIER_REFUSALS
};

struct carrier {
    u64 seq;
    u64 stamp;
    u64 oldest;        /* the number of the oldest row; seq + 1: it holds none */
    u64 beats;         /* bit of a slot: the row is a heartbeat's */
    const u8 *slot;    /* slots * row_bytes */
    const u8 *packet;
    u64 packet_bytes;
    u32 flags;
    u32 core;
    u32 port;
    u32 newest;                  /* the slot of row seq */
    u64 time[CARRIER_SLOTS_MAX]; /* of the row in each slot that has one, ns; not set where rows have no time */
};

MR_INLINE u64 carrier_bytes(const struct carrier_shape *s)
{
    return CARRIER_FIXED + (s->slots + 7u) / 8 + (u64)s->slots * s->row_bytes + (s->keyed ? 8 : 0);
}

/* The slot of row `n`, n >= 1. */
MR_INLINE u32 carrier_slot(const struct carrier_shape *s, u64 n) { return (u32)((n - 1) % s->slots); }

/* The same of a row that the carrier holds, without a division. */
MR_INLINE u32 carrier_at(const struct carrier *c, const struct carrier_shape *s, u64 n)
{
    u32 back = (u32)(c->seq - n);

    return back > c->newest ? c->newest + s->slots - back : c->newest - back;
}

/* The row's bytes, its time (0 where rows have none), and whether it is a heartbeat's. */
MR_INLINE const u8 *carrier_row(const struct carrier *c, const struct carrier_shape *s, u32 slot)
{
    return c->slot + slot * s->row_bytes;
}

MR_INLINE u64 carrier_time(const struct carrier *c, const struct carrier_shape *s, u32 slot)
{
    return s->time == CARRIER_NO_TIME ? 0 : c->time[slot];
}

MR_INLINE int carrier_beat(const struct carrier *c, u32 slot) { return c->beats >> slot & 1; }

MR_INLINE u64 carrier_rotate(u64 x, u32 by) { return x << by | x >> (64 - by); }

MR_INLINE void carrier_round(u64 *v)
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = carrier_rotate(v[1], 13) ^ v[0];
    v[3] = carrier_rotate(v[3], 16) ^ v[2];
    v[0] = carrier_rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = carrier_rotate(v[1], 17) ^ v[2];
    v[3] = carrier_rotate(v[3], 21) ^ v[0];
    v[2] = carrier_rotate(v[2], 32);
}

/* SipHash-2-4. */
MR_INLINE u64 carrier_tag(const u64 *key, const u8 *p, u64 bytes)
{
    u64 v[4] = { key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull, key[0] ^ 0x6c7967656e657261ull,
                 key[1] ^ 0x7465646279746573ull };
    u64 last = bytes << 56;

    for (u64 at = 0; at + 8 <= bytes; at += 8) {
        v[3] ^= mr_load64(p + at);
        carrier_round(v);
        carrier_round(v);
        v[0] ^= mr_load64(p + at);
    }
    for (u64 i = 0; i < bytes % 8; i++)
        last |= (u64)p[bytes / 8 * 8 + i] << (8 * i);
    v[3] ^= last;
    carrier_round(v);
    carrier_round(v);
    v[0] ^= last;
    v[2] ^= 255;
    for (u32 i = 0; i < 4; i++)
        carrier_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

MR_INLINE u64 carrier_time40(const u8 *p)
{
    return (u64)p[0] << 32 | (u64)p[1] << 24 | (u64)p[2] << 16 | (u64)p[3] << 8 | p[4];
}

/* The times of all rows, newest first: each is the last moment at or before the one behind it that has its 40 bits. */
MR_INLINE int carrier_times(struct carrier *c, const struct carrier_shape *s)
{
    u64 behind = c->stamp;

    for (u64 n = c->seq; n + 1 > c->oldest; n--) {
        u32 slot = carrier_at(c, s, n);
        u64 gap = (behind - carrier_time40(c->slot + slot * s->row_bytes + s->time)) & CARRIER_TIME_MASK;

        if (gap > CARRIER_GAP || gap > behind)
            return 0;
        /* The row of this packet is of this moment. */
        if (n == c->seq && c->flags && gap)
            return 0;
        behind -= gap;
        c->time[slot] = behind;
    }
    return 1;
}

/* Reads `bytes` bytes at `p` as a carrier of the shape `s`. The addresses in `c` lie inside of them. */
MR_INLINE enum carrier_refusal carrier_read(struct carrier *c, const struct carrier_shape *s, const u8 *p, u64 bytes)
{
    u64 whole = carrier_bytes(s), tag = s->keyed ? 8 : 0;

    if (bytes < whole)
        return CARRIER_SHORT;
    if (((u32)p[12] << 8 | p[13]) != CARRIER_TYPE || p[14] >> 4 != CARRIER_VERSION)
        return CARRIER_FOREIGN;
    if (p[15] != s->slots || p[16] != s->row_bytes)
        return CARRIER_SHAPED;
    if (tag && carrier_tag(s->key, p, whole - 8) != mr_load64(p + whole - 8))
        return CARRIER_FORGED;
    c->seq = __builtin_bswap64(mr_load64(p + 18));
    c->stamp = __builtin_bswap64(mr_load64(p + 26));
    c->slot = p + whole - tag - (u64)s->slots * s->row_bytes;
    c->packet = p + whole;
    c->packet_bytes = bytes - whole;
    c->flags = p[14] & 15;
    c->core = (u32)p[4] << 8 | p[5];
    c->port = (u32)p[10] << 8 | p[11];
    c->beats = 0;
    if (c->flags > CARRIER_BEAT || (c->flags && !c->seq) || (c->flags == CARRIER_BEAT && c->packet_bytes))
        return CARRIER_FLAGS;
    if (c->seq > CARRIER_LAST)
        return CARRIER_NUMBER;
    if (p[17] != c->seq % s->slots)
        return CARRIER_INDEX;
    c->newest = p[17] ? p[17] - 1u : s->slots - 1u;
    c->oldest = c->seq < s->slots ? 1 : c->seq - s->slots + 1;
    for (u32 i = 0; i < (s->slots + 7u) / 8; i++)
        c->beats |= (u64)p[CARRIER_FIXED + i] << (8 * i);
    if (s->slots < 64 && c->beats >> s->slots)
        return CARRIER_SLOT;
    if (c->seq < s->slots) {
        const u8 *end = c->slot + (u64)s->slots * s->row_bytes;

        if (c->beats >> c->seq)
            return CARRIER_SLOT;
        for (const u8 *at = c->slot + c->seq * s->row_bytes; at < end; at++)
            if (*at)
                return CARRIER_SLOT;
    }
    if (c->flags && carrier_beat(c, c->newest) != (c->flags == CARRIER_BEAT))
        return CARRIER_FLAGS;
    if (s->time != CARRIER_NO_TIME && !carrier_times(c, s))
        return CARRIER_TIMES;
    return CARRIER_TAKEN;
}

#endif
