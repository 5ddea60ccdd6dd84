/* accesses: for tests, the words and versions that packets read and wrote, from which a host makes a graph: a packet comes behind
 * the one that wrote what it read, and before the one that overwrote it. A cycle is a fault of the protocol; an order without one
 * is an order in which one core could have run the packets (Adya, Liskov and O'Neil, Generalized Isolation Level
 * Definitions, ICDE 2000).
 *
 * One log a core, without an end; no module but for tests has it. */
#ifndef MR_SYNC_ACCESSES_H
#define MR_SYNC_ACCESSES_H

#ifdef TRANSACT_LOG

#include <stdlib.h>

#include "../base.h"

struct accesses {
    struct mr_access *at;
    u64 count, room;
    u64 lost; /* there was no memory for these */
};

MR_OUTLINE void accesses_add(struct accesses *log, struct mr_access access)
{
    if (!log)
        return;
    if (log->count == log->room) {
        u64 room = log->room ? 2 * log->room : 1024;
        struct mr_access *more = (struct mr_access *)realloc(log->at, room * sizeof *more);

        if (!more) {
            log->lost++;
            return;
        }
        log->at = more;
        log->room = room;
    }
    log->at[log->count++] = access;
}

MR_INLINE void accesses_note(struct accesses *log, u32 what, const u64 *word, u64 version, u32 timed)
{
    accesses_add(log, (struct mr_access){ .what = what, .word = (u64)(uintptr_t)word, .version = version, .timed = timed });
}

/* `map`: an address that `accesses_hand` makes an object of. */
MR_OUTLINE void accesses_removed(struct accesses *log, const void *map, u64 time, const u8 *key, u32 bytes)
{
    u8 *copy = log ? (u8 *)malloc(bytes ? bytes : 1) : NULL;

    if (!copy)
        return;
    memcpy(copy, key, bytes);
    accesses_add(log, (struct mr_access){ .what = MR_ACCESS_EXPIRED, .word = (u64)(uintptr_t)map, .time = time,
                                          .key = copy, .key_bytes = bytes });
}

MR_INLINE void accesses_end(struct accesses *log, u32 what, u64 number, u64 alone, u64 time)
{
    accesses_add(log, (struct mr_access){ .what = what, .number = number, .version = alone, .time = time });
}

/* Hands all of it over. `object`: the place of a map among the program's objects. */
MR_INLINE void accesses_hand(struct accesses *log, u32 (*object)(const void *map, const void *of), const void *of,
                             mr_access_fn *fn, void *context)
{
    for (u64 i = 0; i < log->count; i++) {
        struct mr_access *access = &log->at[i];

        if (access->what == MR_ACCESS_EXPIRED) {
            access->object = object((const void *)(uintptr_t)access->word, of);
            access->word = 0;
        }
        fn(context, access);
        free((void *)(uintptr_t)access->key);
    }
    free(log->at);
    *log = (struct accesses){0};
}

#endif

#endif
