/* SYN cookies (RFC 4987, section 3.6): what the four helpers tcp_raw_gen_syncookie_ipv4, …_ipv6,
 * tcp_raw_check_syncookie_ipv4 and …_ipv6 have in common.
 *
 * As in the kernel (net/ipv4/syncookies.c) a cookie is the sum of the client's sequence number, a code of
 * the connection, the minute in its upper 8 bits, and in the lower 24 a code of connection and minute plus
 * the index of a segment size. The codes are SipHash-2-4 (Aumasson, Bernstein: SipHash, INDOCRYPT 2012) of
 * addresses and ports under a key drawn from the run's seed: who is to withstand forgeries gives the run a
 * secret seed. Time is the packets'.
 */
#ifndef MR_HELPER_SYNCOOKIE_H
#define MR_HELPER_SYNCOOKIE_H

#include "../base.h"

#define SYNCOOKIE_BITS 24
#define SYNCOOKIE_LOW ((1u << SYNCOOKIE_BITS) - 1)
#define SYNCOOKIE_MINUTES 2u /* how long a cookie is good, begun minutes */

#define SYNCOOKIE_TCP_BYTES 20u

static const u16 syncookie_sizes_4[4] = { 536, 1300, 1440, 1460 };
static const u16 syncookie_sizes_6[4] = { 1280 - 60, 1480 - 60, 1500 - 60, 9000 - 60 };

MR_INLINE u64 syncookie_rotate(u64 x, u32 by) { return x << by | x >> (64 - by); }

MR_INLINE void syncookie_round(u64 v[4])
{
    v[0] += v[1];
    v[1] = syncookie_rotate(v[1], 13) ^ v[0];
    v[0] = syncookie_rotate(v[0], 32);
    v[2] += v[3];
    v[3] = syncookie_rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = syncookie_rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = syncookie_rotate(v[1], 17) ^ v[2];
    v[2] = syncookie_rotate(v[2], 32);
}

/* SipHash-2-4 of whole words. */
MR_INLINE u64 syncookie_siphash(u64 k0, u64 k1, const u64 *word, u32 words)
{
    u64 v[4] = { k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull, k0 ^ 0x6c7967656e657261ull,
                 k1 ^ 0x7465646279746573ull };

    for (u32 i = 0; i <= words; i++) {
        u64 m = i < words ? word[i] : (u64)words * 8 << 56;

        v[3] ^= m;
        syncookie_round(v);
        syncookie_round(v);
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    for (u32 i = 0; i < 4; i++)
        syncookie_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The code of a connection, by the addresses in its IP header and the ports in its TCP header. */
MR_INLINE u32 syncookie_code(u64 seed, u32 which, const u8 *ip, int six, const u8 *tcp, u32 minute)
{
    u64 word[5] = { (u64)mr_load32(tcp) << 32 | minute };

    if (six)
        memcpy(word + 1, ip + 8, 32);
    else
        memcpy(word + 1, ip + 12, 8);
    return (u32)syncookie_siphash(mr_random(seed, 2 * which), mr_random(seed, 2 * which + 1), word, six ? 5 : 2);
}

MR_INLINE u32 syncookie_minute(const struct mr_packet *pkt) { return (u32)(pkt->time / 60000000000ull); }

/* The segment size that a TCP header's options name; 0 if none. */
MR_INLINE u32 syncookie_option(const u8 *tcp, u32 length)
{
    u32 at = SYNCOOKIE_TCP_BYTES, size = 0;

    while (at < length) {
        u32 kind = tcp[at], bytes;

        if (kind == 0)
            break;
        if (kind == 1) {
            at++;
            continue;
        }
        if (at + 2 > length)
            break;
        bytes = tcp[at + 1];
        if (bytes < 2 || at + bytes > length)
            break;
        if (kind == 2 && bytes == 4 && (tcp[at + 2] | tcp[at + 3]))
            size = (u32)tcp[at + 2] << 8 | tcp[at + 3];
        at += bytes;
    }
    return size;
}

MR_OUTLINE u64 syncookie_make(u64 seed, const u8 *ip, int six, const u8 *tcp, u64 length,
                              const struct mr_packet *pkt)
{
    const u16 *sizes = six ? syncookie_sizes_6 : syncookie_sizes_4;
    u32 minute = syncookie_minute(pkt), size, index, cookie;

    if (length < SYNCOOKIE_TCP_BYTES || length != (u64)(tcp[12] >> 4) * 4)
        return mr_errno(EINVAL);
    size = syncookie_option(tcp, (u32)length);
    if (size == 0)
        size = sizes[0];
    for (index = 3; index > 0; index--)
        if (size >= sizes[index])
            break;
    cookie = syncookie_code(seed, 0, ip, six, tcp, 0) + __builtin_bswap32(mr_load32(tcp + 4)) +
             (minute << SYNCOOKIE_BITS) + ((syncookie_code(seed, 1, ip, six, tcp, minute) + index) & SYNCOOKIE_LOW);
    return cookie | (u64)sizes[index] << 32;
}

MR_OUTLINE u64 syncookie_check(u64 seed, const u8 *ip, int six, const u8 *tcp, const struct mr_packet *pkt)
{
    u32 cookie = __builtin_bswap32(mr_load32(tcp + 8)) - 1, sequence = __builtin_bswap32(mr_load32(tcp + 4)) - 1;
    u32 minute = syncookie_minute(pkt), age;

    cookie -= syncookie_code(seed, 0, ip, six, tcp, 0) + sequence;
    age = (minute - (cookie >> SYNCOOKIE_BITS)) & (~0u >> SYNCOOKIE_BITS);
    if (age >= SYNCOOKIE_MINUTES)
        return mr_errno(EACCES);
    cookie -= syncookie_code(seed, 1, ip, six, tcp, minute - age);
    return (cookie & SYNCOOKIE_LOW) < 4 ? 0 : mr_errno(EACCES);
}

#endif
