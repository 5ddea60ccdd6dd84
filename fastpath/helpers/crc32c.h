/* crc32c: CRC-32C (Castagnoli; RFC 3720 B.4) of the eight bytes of `word`, least significant first,
 * continuing `seed`; neither is complemented here. One instruction where the machine has it. */
#ifndef MR_HELPER_CRC32C_H
#define MR_HELPER_CRC32C_H

#include "../base.h"

/* Four bits a step: 0x82f63b78 is the polynomial, reflected, times each nibble. */
MR_INLINE u32 helper_crc32c_software(u32 crc, u64 word)
{
    static const u32 nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    u64 rest = word ^ crc;

    for (int i = 0; i < 16; i++)
        rest = (rest >> 4) ^ nibble[rest & 15];
    return (u32)rest;
}

MR_INLINE u64 helper_crc32c(u64 seed, u64 word, struct mr_packet *pkt)
{
    (void)pkt;
#if defined(__SSE4_2__) && defined(__x86_64__)
    return (u32)__builtin_ia32_crc32di((u32)seed, word);
#elif defined(__ARM_FEATURE_CRC32)
    return __builtin_arm_crc32cd((u32)seed, word);
#else
    return helper_crc32c_software((u32)seed, word);
#endif
}

#endif
