/* Rows: what of a packet reaches state, for the cores that do not have the packet (crates/history). Bits are numbered from
 * the lowest of the first byte. All positions and lengths are constants where these are called, so that each becomes a few
 * moves. A row may come over a network: nothing here reads beyond it, and what is read of a packet is read inside of it. */
#ifndef MR_SYNC_ROWS_H
#define MR_SYNC_ROWS_H

#include "../base.h"

/* `n` bytes, the lowest first. */
MR_INLINE u64 row_load(const u8 *from, u32 n)
{
    u64 value = 0;

    memcpy(&value, from, n);
    return value;
}

MR_INLINE void row_store(u8 *to, u64 value, u32 n) { memcpy(to, &value, n); }

/* Bytes of the packet as a number; 0 where they are not all there. */
MR_INLINE u64 row_packet(const struct mr_packet *pkt, u64 address, u32 n)
{
    u64 data = (u64)(uintptr_t)pkt->data, end = (u64)(uintptr_t)pkt->end;

    if (address < data || address > end || end - address < n)
        return 0;
    return row_load((const u8 *)(uintptr_t)address, n);
}

/* Adds `bits` of `value` at bit `at` to a row that is zero there. */
MR_INLINE void row_put(u8 *row, u32 at, u32 bits, u64 value)
{
    if (at % 8 == 0 && bits % 8 == 0) {
        row_store(row + at / 8, value, bits / 8);
        return;
    }
    for (u32 done = 0; done < bits;) {
        u32 place = at + done, room = 8 - place % 8;
        u32 now = bits - done < room ? bits - done : room;

        row[place / 8] |= (u8)((value >> done & ((1u << now) - 1)) << place % 8);
        done += now;
    }
}

/* The same bits again. */
MR_INLINE u64 row_take(const u8 *row, u32 at, u32 bits)
{
    u64 value = 0;

    if (at % 8 == 0 && bits % 8 == 0)
        return row_load(row + at / 8, bits / 8);
    for (u32 done = 0; done < bits;) {
        u32 place = at + done, room = 8 - place % 8;
        u32 now = bits - done < room ? bits - done : room;

        value |= (u64)(row[place / 8] >> place % 8 & ((1u << now) - 1)) << done;
        done += now;
    }
    return value;
}

/* The number nearest to `near` of which `low` is the lowest `bits` bits. */
MR_INLINE u64 row_whole(u64 low, u32 bits, u64 near)
{
    u64 apart = (low - near) << (64 - bits);

    return near + (u64)((s64)apart >> (64 - bits));
}

#endif
