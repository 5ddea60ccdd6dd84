/* undo: what a reader's stores overwrote, of its packet and its worker's own state, until it is sure that
 * the reader need not run again as a writer. */
#ifndef MR_SYNC_UNDO_H
#define MR_SYNC_UNDO_H

#include "../base.h"

/* Stores of one packet that can be undone; the next one makes a writer of the reader. */
#ifndef UNDO_MAX
#define UNDO_MAX 32u
#endif

struct undo_store {
    u8 *at;
    u64 old;
    u64 bytes;
};

struct undo {
    u32 count;
    struct undo_store store[UNDO_MAX];
};

MR_INLINE void undo_begin(struct undo *u) { u->count = 0; }

/* Before a store of 1 to 8 bytes: 1 if there is no room to keep what it overwrites. */
MR_INLINE int undo_keep(struct undo *u, const u8 *at, u32 bytes)
{
    struct undo_store *store = &u->store[u->count];

    if (mr_unlikely(u->count == UNDO_MAX))
        return 1;
    store->at = (u8 *)(uintptr_t)at;
    store->old = 0;
    memcpy(&store->old, at, bytes);
    store->bytes = bytes;
    u->count++;
    return 0;
}

/* Last first, as places may be written twice. */
MR_OUTLINE void undo_all(struct undo *u)
{
    while (u->count > 0) {
        const struct undo_store *store = &u->store[--u->count];

        memcpy(store->at, &store->old, store->bytes);
    }
}

#endif
