/* words: version words of transactions, and access to what lies under them (transact.h).
 *
 * Orders of memory: between loading a word and loading it again, what lies under it is loaded by relaxed atomic
 * operations, kept in between by acquire loads and a fence; all that is stored under a taken word is stored relaxed behind a
 * release fence (Boehm, Can seqlocks get along with programming language memory models?, MSPC 2012). On x86-64 these
 * fences are no instructions. ThreadSanitizer knows no fences; it has nothing to complain about as all of these accesses are
 * atomic. */
#ifndef MR_SYNC_WORDS_H
#define MR_SYNC_WORDS_H

#include "lock.h"

/* For tests: a fault is planted where TRANSACT_FAULT is not 0 (tests/transact.c). */
#ifndef TRANSACT_FAULT
#define TRANSACT_FAULT(n) 0
#endif
#define TRANSACT_FAULT_READS 1
#define TRANSACT_FAULT_MISSES 2
#define TRANSACT_FAULT_FULLNESS 3
#define TRANSACT_FAULT_UPDATE 4
#define TRANSACT_FAULT_DEAD 5
#define TRANSACT_FAULT_GRACE 6
#define TRANSACT_FAULT_REST 7
#define TRANSACT_FAULT_JOIN 8
#define TRANSACT_FAULT_ALONE 9
#define TRANSACT_FAULT_MARK 10
#define TRANSACT_FAULT_TIME 11
#define TRANSACT_FAULT_FEW 12
#define TRANSACT_FAULT_OWN 13

/* For tests: a packet has taken what it writes, and nothing of it shows yet. */
#ifndef TRANSACT_HELD
#define TRANSACT_HELD() ((void)0)
#endif

/* For tests: what packets read and wrote is noted (accesses.h). */
#ifdef TRANSACT_LOG
#define TRANSACT_LOGGED(...) __VA_ARGS__
#else
#define TRANSACT_LOGGED(...)
#endif

/* For profiles: the step of each word is kept, and what an attempt met is counted (conflicts.h). */
#ifdef MR_PROFILE
#define TRANSACT_PROFILED(...) __VA_ARGS__
#else
#define TRANSACT_PROFILED(...)
#endif

/* A version word, from the lowest bit: taken, dead, dying, the core (10 bits) and the step (12 bits) of the last
 * writer, the number of writes (39 bits). */
#define TRANSACT_TAKEN 1ull
#define TRANSACT_DEAD 2ull
#define TRANSACT_DYING 4ull
#define TRANSACT_FLAGS 7ull
/* Of an object's word: there is no room. */
#define TRANSACT_FULL 2ull

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define TRANSACT_FENCE(order) ((void)0)
#else
#define TRANSACT_FENCE(order) __atomic_thread_fence(order)
#endif

MR_INLINE u64 transact_load(const u64 *word)
{
    MR_POINT();
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

MR_INLINE u32 transact_load32(const u32 *p)
{
    MR_POINT();
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

MR_INLINE void transact_store(u64 *word, u64 value)
{
    MR_POINT();
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

MR_INLINE int transact_cas(u64 *word, u64 from, u64 to)
{
    MR_POINT();
    return __atomic_compare_exchange_n(word, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Shared bytes at an address that is a multiple of 8 from private ones, word by word. */
MR_INLINE void transact_put_bytes(u8 *to, const u8 *from, u32 bytes)
{
    u32 i = 0;

    for (; i + 8 <= bytes; i += 8) {
        MR_POINT();
        __atomic_store_n((u64 *)(to + i), mr_load64(from + i), __ATOMIC_RELAXED);
    }
    for (; i < bytes; i++)
        __atomic_store_n(to + i, from[i], __ATOMIC_RELAXED);
}

MR_INLINE void transact_get_bytes(u8 *to, const u8 *from, u32 bytes)
{
    u32 i = 0;

    for (; i + 8 <= bytes; i += 8) {
        MR_POINT();
        mr_store64(to + i, __atomic_load_n((const u64 *)(from + i), __ATOMIC_RELAXED));
    }
    for (; i < bytes; i++)
        to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

MR_INLINE int transact_same_bytes(const u8 *shared, const u8 *own, u32 bytes)
{
    u32 i = 0;
    u64 difference = 0;

    for (; i + 8 <= bytes; i += 8)
        difference |= __atomic_load_n((const u64 *)(shared + i), __ATOMIC_RELAXED) ^ mr_load64(own + i);
    for (; i < bytes; i++)
        difference |= __atomic_load_n(shared + i, __ATOMIC_RELAXED) ^ own[i];
    return difference == 0;
}

MR_INLINE void transact_relax(u32 *spins)
{
    if (*spins < LOCK_SPINS) {
        ++*spins;
        lock_pause();
    } else {
        sched_yield();
    }
}

#endif
