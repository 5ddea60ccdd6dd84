/* history: rows of state-compute replication in memory, and the ring form, in which a sequencer writes each row once into a
 * ring that all replicas read (Xu et al., State-Compute Replication, section 3; a row is what of a packet reaches state).
 *
 * A row lies in a place that it shares with the row as many numbers later as there are places. The place has the row's
 * number, which is zero while it is written, so that a reader knows whether it copied one row or parts of two (a seqlock:
 * Boehm, Can Seqlocks Get Along With Programming Language Memory Models, MSPC 2012). There is one writer and it waits for no
 * reader: a replica that stalls longer than the ring is long finds another number and stops, with the reason.
 *
 * In the ring form no row is lost with a packet. A packet's descriptor carries the number of its row, or of the last row
 * before it, and comes to a replica after the row is in the ring; the replica applies all rows up to it first.
 *
 * Memory: 24 + HISTORY_ROW_BYTES bytes a row.
 *
 * For tests: MR_POINT() is where a test may switch threads, HISTORY_FAULT(n) plants fault n.
 */
#ifndef MR_SYNC_HISTORY_H
#define MR_SYNC_HISTORY_H

#include "../base.h"

/* Bytes of a row in memory: those on the wire, padded with zeros to 8, 16, 32 or 64. */
#ifndef HISTORY_ROW_BYTES
#define HISTORY_ROW_BYTES 64u
#endif
#define HISTORY_WORDS (HISTORY_ROW_BYTES / 8u)

#ifndef MR_POINT
#define MR_POINT() ((void)0)
#endif

/* Faults that fastpath/tests have to find; none is in a module. */
#ifndef HISTORY_FAULT
#define HISTORY_FAULT(n) 0
#endif
#define HISTORY_FAULT_TORN 7 /* a copy is not compared with its number afterwards */

/* LOST: only in a log (recover.h). BEAT: a heartbeat, of which only the time counts. */
enum history_kind { HISTORY_LOST, HISTORY_ROW, HISTORY_BEAT };

struct history_row {
    u64 seq;  /* 0: none, or being written */
    u64 kind; /* enum history_kind */
    u64 time; /* ns; 0 where rows have no time */
    u64 word[HISTORY_WORDS];
};

/* A row's bytes as words, padded with zeros. By loads of whole words inside of the row: bytes that were just stored one way and
 * are loaded another wait for the store. */
MR_INLINE void history_words(u64 *word, const u8 *row, u32 bytes)
{
    u32 i = 0;

    for (; i < bytes / 8; i++)
        word[i] = mr_load64(row + 8 * i);
    if (bytes % 8) {
        u32 left = bytes % 8;
        const u8 *p = row + 8 * i;

        if (bytes >= 8)
            word[i] = mr_load64(p + left - 8) >> (64 - 8 * left);
        else if (left >= 4)
            word[i] = mr_load32(p) | (u64)mr_load32(p + left - 4) << (8 * (left - 4));
        else
            word[i] = p[0] | (u64)p[left / 2] << (8 * (left / 2)) | (u64)p[left - 1] << (8 * (left - 1));
        i++;
    }
    for (; i < HISTORY_WORDS; i++)
        word[i] = 0;
}

MR_INLINE void history_write(struct history_row *e, u64 n, u64 kind, u64 time, const u8 *row, u32 bytes)
{
    u64 word[HISTORY_WORDS] = { 0 };

    if (row)
        history_words(word, row, bytes);
    __atomic_store_n(&e->seq, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    MR_POINT();
    __atomic_store_n(&e->kind, kind, __ATOMIC_RELAXED);
    __atomic_store_n(&e->time, time, __ATOMIC_RELAXED);
    for (u32 i = 0; i < HISTORY_WORDS; i++) {
        MR_POINT();
        __atomic_store_n(&e->word[i], word[i], __ATOMIC_RELAXED);
    }
    MR_POINT();
    __atomic_store_n(&e->seq, n, __ATOMIC_RELEASE);
}

/* Whether the place held row `n` during the whole copy. */
MR_INLINE int history_copy(const struct history_row *e, u64 n, struct history_row *to)
{
    to->seq = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE);
    MR_POINT();
    to->kind = __atomic_load_n(&e->kind, __ATOMIC_RELAXED);
    to->time = __atomic_load_n(&e->time, __ATOMIC_RELAXED);
    for (u32 i = 0; i < HISTORY_WORDS; i++) {
        MR_POINT();
        to->word[i] = __atomic_load_n(&e->word[i], __ATOMIC_RELAXED);
    }
    MR_POINT();
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return to->seq == n && (HISTORY_FAULT(HISTORY_FAULT_TORN) || __atomic_load_n(&e->seq, __ATOMIC_RELAXED) == n);
}

/* ---- the ring ---- */

/* Followed by its rows. */
struct history {
    u64 head __attribute__((aligned(64))); /* the last number in it, 0: none */
    u64 rows __attribute__((aligned(64))); /* places, a power of two */
};

/* GIVEN: a row or a heartbeat. DONE: all rows up to the one that was asked for. AHEAD: the ring has not that one: a descriptor
 * that came before its row, or is forged. OVERRUN: the row has been overwritten; this replica can go on no more. */
enum history_next { HISTORY_GIVEN, HISTORY_DONE, HISTORY_AHEAD, HISTORY_OVERRUN };

MR_INLINE u64 history_bytes(u64 rows) { return sizeof(struct history) + rows * sizeof(struct history_row); }

/* `rows` is a power of two; the memory is zero. */
MR_INLINE void history_create(struct history *h, u64 rows) { h->rows = rows; }

MR_INLINE struct history_row *history_place(struct history *h, u64 n)
{
    return (struct history_row *)(h + 1) + (n & (h->rows - 1));
}

/* Puts row `n` in, head + 1, without showing it; for the sequencer alone. bytes <= HISTORY_ROW_BYTES. */
MR_INLINE void history_put(struct history *h, u64 n, u64 kind, u64 time, const u8 *row, u32 bytes)
{
    history_write(history_place(h, n), n, kind, time, row, bytes);
}

/* Shows all rows up to `n`; before the descriptors of their packets are handed over. */
MR_INLINE void history_publish(struct history *h, u64 n) { __atomic_store_n(&h->head, n, __ATOMIC_RELEASE); }

/* Copies the row after `*applied` to `to`, if it is not behind row `upto`. */
MR_INLINE enum history_next history_next(struct history *h, u64 *applied, u64 upto, struct history_row *to)
{
    u64 n = *applied + 1;

    if (*applied >= upto)
        return HISTORY_DONE;
    if (mr_unlikely(__atomic_load_n(&h->head, __ATOMIC_ACQUIRE) < upto))
        return HISTORY_AHEAD;
    if (mr_unlikely(!history_copy(history_place(h, n), n, to)))
        return HISTORY_OVERRUN;
    *applied = n;
    return HISTORY_GIVEN;
}

/* Copies up to `most` rows from applied + 1 on, none beyond row `upto`, side by side to `rows`, and the time of the last one to
 * `time`: what is replayed in passes. It stops before a heartbeat; where it gives 0, history_next says what the next one is.
 * `rows` has room for 8 bytes more than the rows. A word is stored as it was loaded: rows that go through a copy of the place are read
 * again across its words, which waits for the stores (5 ns a row). */
MR_INLINE u32 history_take(struct history *h, u64 *applied, u64 upto, u32 most, u8 *rows, u32 bytes, u64 *time)
{
    u32 count = 0;

    if (mr_unlikely(__atomic_load_n(&h->head, __ATOMIC_ACQUIRE) < upto))
        return 0;
    for (; count < most && *applied + count < upto; count++, rows += bytes) {
        u64 n = *applied + count + 1, kind, at;
        const struct history_row *e = history_place(h, n);

        if (mr_unlikely(__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != n))
            break;
        MR_POINT();
        kind = __atomic_load_n(&e->kind, __ATOMIC_RELAXED);
        at = __atomic_load_n(&e->time, __ATOMIC_RELAXED);
        for (u32 i = 0; i < (bytes + 7) / 8; i++) {
            MR_POINT();
            mr_store64(rows + 8 * i, __atomic_load_n(&e->word[i], __ATOMIC_RELAXED));
        }
        MR_POINT();
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (mr_unlikely(kind != HISTORY_ROW ||
                        (!HISTORY_FAULT(HISTORY_FAULT_TORN) && __atomic_load_n(&e->seq, __ATOMIC_RELAXED) != n)))
            break;
        *time = at;
    }
    *applied += count;
    return count;
}

/* Fetches rows applied + 1 to `upto` ahead, while the worker has something else to do: they lie in the cache of a sequencer's core,
 * or in memory. */
MR_INLINE void history_fetch(struct history *h, u64 applied, u64 upto)
{
    u64 mask = h->rows - 1, from = (applied + 1) & mask, count = upto - applied;
    u64 first = from + count > h->rows ? h->rows - from : count;

    if (mr_unlikely(count == 0 || count > h->rows))
        return;
    for (const u8 *p = (const u8 *)history_place(h, from), *end = p + first * sizeof(struct history_row); p < end; p += 64)
        mr_prefetch(p);
    for (const u8 *p = (const u8 *)history_place(h, 0), *end = p + (count - first) * sizeof(struct history_row); p < end; p += 64)
        mr_prefetch(p);
}

#endif
