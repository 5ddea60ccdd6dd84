/* What every fast-path header stands on: the shape of a state object, unaligned access, the keyed
 * hash and memory. Functions are inlined into the emitted code and specialise on a `struct shape`
 * of literals; what is too big for that is MR_OUTLINE and takes the shape as it comes (README.md
 * says what that costs).
 */
#ifndef MR_BASE_H
#define MR_BASE_H

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "abi.h"

/* Where nothing is optimised each function is compiled once instead of at every call, which makes clang three times as fast,
 * and six times where the sanitizers check each copy. Not where a profile samples what is run: inlined, it has the author's line. */
#if (!defined(__OPTIMIZE__) && !defined(MR_SAMPLED)) || (defined(__has_feature) && __has_feature(address_sanitizer))
#define MR_INLINE static __attribute__((unused))
#else
#define MR_INLINE static inline __attribute__((always_inline, unused))
#endif
#define MR_OUTLINE static __attribute__((noinline, unused))
#define mr_likely(x) __builtin_expect(!!(x), 1)
#define mr_unlikely(x) __builtin_expect(!!(x), 0)

/* A state object's declaration, the same fields as `StateObject` of crates/object. The emitter
 * writes one `static const struct shape` of literals an object. */
struct shape {
    u32 key_bytes;    /* 0 for kinds without a key */
    u32 value_bytes;
    u64 capacity;     /* entries; ring buffers: bytes; sketches: columns a row */
    u64 expire_after; /* ns; 0: never */
    u64 first;        /* allocators: the first number */
    u64 window;       /* sketches: ns; 0: never starts again */
    u32 rows;         /* sketches */
    u32 flags;        /* the kernel's map_flags */
    u32 timer;        /* where in a value its timer is, and 1; 0: it has none (state/timers.h) */
    u32 event;        /* an entry's expiry runs this function, by its number from 1; 0: nobody hears of it (state/timers.h) */
    u32 shared;       /* several workers have it in common: who calls holds the lock (sync/lock.h) */
    u32 timed;        /* shared_hash: its entries have the time of their last writer (state/transact_map.h) */
    u32 homes;        /* allocators: a lease takes a number of the packet's own index, of this many (state/homes.h); 0: any */
    u64 staleness;    /* distributed: ns that others' parts may be old; 0: there is one copy */
    u64 max, or;      /* distributed: members of which the largest number counts, and those of bits; others are sums */
    u32 object;       /* where `homes` is set: its place among the program's objects */
    u32 numbered;     /* shared_allocator: entries are found by number, there are no buckets (state/transact_leases.h) */
    u32 noted;        /* places that change are noted, for a copy elsewhere (state/notes.h); not of shared ones */
};

/* No index: of an entry, a bucket, a trie node. */
#define MR_NONE 0xffffffffu

/* The most entries an object may have; above it `create` answers -E2BIG. Entries are named by 31
 * bits, the 32nd says whether the entry is free. */
#define MR_CAPACITY_MAX 0x7ffffff0ull

/* The longest key, as in the kernel (its stack frame). */
#define MR_KEY_BYTES_MAX 512u
#define MR_KEY_WORDS_MAX (MR_KEY_BYTES_MAX / 8)

/* A live part above this many bytes is worth prefetching. tests/bench_hash.c, on a Xeon of 2 MiB
 * second-level cache, medians in CPU time of a refresh with two-stage prefetch against one without:
 *     live MiB   0.1    0.2    0.4    0.8    1.5    3      6      12     48
 *     ratio      1.08   0.92   0.82   0.68   0.63   0.52   0.50   0.44   0.43
 * The passes pay from a quarter of a MiB on. */
#ifndef MR_CACHE_BYTES
#define MR_CACHE_BYTES (256ull << 10)
#endif

/* ---- access to bytes of any alignment and type ---- */

typedef u16 __attribute__((may_alias, aligned(1))) mr_u16;
typedef u32 __attribute__((may_alias, aligned(1))) mr_u32;
typedef u64 __attribute__((may_alias, aligned(1))) mr_u64;

MR_INLINE u16 mr_load16(const u8 *p) { return *(const mr_u16 *)p; }
MR_INLINE u32 mr_load32(const u8 *p) { return *(const mr_u32 *)p; }
MR_INLINE u64 mr_load64(const u8 *p) { return *(const mr_u64 *)p; }
MR_INLINE void mr_store16(u8 *p, u16 v) { *(mr_u16 *)p = v; }
MR_INLINE void mr_store32(u8 *p, u32 v) { *(mr_u32 *)p = v; }
MR_INLINE void mr_store64(u8 *p, u64 v) { *(mr_u64 *)p = v; }

MR_INLINE void mr_prefetch(const void *p) { __builtin_prefetch(p, 0, 3); }

/* Touches every line of [p, p + bytes). */
MR_INLINE void mr_prefetch_range(const u8 *p, u64 bytes)
{
    for (u64 at = 0; at < bytes; at += 64)
        __builtin_prefetch(p + at, 0, 3);
}

/* ---- numbers ---- */

MR_INLINE u64 mr_round_up(u64 n, u64 multiple) { return (n + multiple - 1) / multiple * multiple; }

/* The smallest power of two that is not below n; n <= 2^63. */
MR_INLINE u64 mr_power_of_two(u64 n) { return n <= 1 ? 1 : 1ull << (64 - __builtin_clzll(n - 1)); }

MR_INLINE u64 mr_errno(int e) { return (u64)-(s64)e; }

MR_INLINE u32 mr_words(u32 bytes) { return bytes / 8 + (bytes % 8 != 0); }

/* The splitmix64 generator (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
 * OOPSLA 2014): its n-th output for a seed. */
MR_INLINE u64 mr_random(u64 seed, u64 n)
{
    u64 z = seed + (n + 1) * 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* ---- the keyed hash ---- */

struct mr_secret {
    u64 word[4];
};

MR_INLINE struct mr_secret mr_secret(u64 seed)
{
    struct mr_secret s;

    for (u32 i = 0; i < 4; i++)
        s.word[i] = mr_random(seed, i);
    s.word[3] |= 1; /* a multiplier: must not be zero */
    return s;
}

/* Both halves of the product, one over the other: every bit of either factor reaches the result. */
MR_INLINE u64 mr_fold(u64 a, u64 b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (u64)product ^ (u64)(product >> 64);
}

/* A folded-multiply hash of whole words. Each multiplication takes two words of the key, both masked
 * by secret state, so that who does not know the secret cannot choose keys that collide; the last one
 * mixes once more, because bucket and signature are taken from opposite ends of the result. The
 * length is fixed per object and need not enter. */
MR_INLINE u64 mr_hash(const u64 *word, u32 words, const struct mr_secret *secret)
{
    u64 h = secret->word[0];
    u32 i;

    for (i = 0; i + 1 < words; i += 2)
        h = mr_fold(word[i] ^ secret->word[1], word[i + 1] ^ h);
    if (words & 1)
        h = mr_fold(word[words - 1] ^ secret->word[1], h ^ secret->word[2]);
    return mr_fold(h ^ secret->word[2], secret->word[3]);
}

MR_INLINE int mr_words_equal(const u64 *a, const u64 *b, u32 words)
{
    u64 difference = 0;

    for (u32 i = 0; i < words; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

/* A key as control hands it in, as the fast path wants it: whole words, zero padded. */
MR_INLINE void mr_pad_key(u64 *word, const u8 *key, u32 bytes)
{
    word[mr_words(bytes) - 1] = 0;
    memcpy(word, key, bytes);
}

/* An index or a number as control sees it: `key_bytes` bytes, at most 8, least significant first. */
MR_INLINE u64 mr_number(const struct shape *s, const u8 *key)
{
    u64 n = 0;

    for (u32 i = 0; i < s->key_bytes && i < 8; i++)
        n |= (u64)key[i] << 8 * i;
    return n;
}

MR_INLINE void mr_number_out(const struct shape *s, u8 *key, u64 n)
{
    for (u32 i = 0; i < s->key_bytes && i < 8; i++)
        key[i] = (u8)(n >> 8 * i);
}

/* ---- what AddressSanitizer is told ----
 *
 * It knows the heap, the stack and variables, and nothing of what lies in a mapping. So modules under it
 * have MR_GAP bytes around each value, and whatever a program may not touch is forbidden: these gaps,
 * entries that were never taken, records that are not held. Entries that were given back stay allowed, as a
 * program may still hold a pointer to their values. Otherwise all of this is nothing. */

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if __has_feature(address_sanitizer)
void __asan_poison_memory_region(void const volatile *p, size_t bytes);
void __asan_unpoison_memory_region(void const volatile *p, size_t bytes);
#define MR_GAP 16u
#define MR_GUARD MR_PAGE
/* A function that may touch what is forbidden. */
#define MR_UNWATCHED static __attribute__((noinline, unused, no_sanitize("address")))
MR_INLINE void mr_forbid(const void *p, u64 bytes) { __asan_poison_memory_region(p, bytes); }
MR_INLINE void mr_allow(const void *p, u64 bytes) { __asan_unpoison_memory_region(p, bytes); }
#else
#define MR_GAP 0u
#define MR_GUARD 0ull
#define MR_UNWATCHED MR_INLINE
MR_INLINE void mr_forbid(const void *p, u64 bytes) { (void)p, (void)bytes; }
MR_INLINE void mr_allow(const void *p, u64 bytes) { (void)p, (void)bytes; }
#endif

/* ---- memory ---- */

#define MR_PAGE 4096ull
#define MR_HUGE_PAGE (2ull << 20)

/* What mr_map_memory takes for `bytes`: whole pages, from 2 MiB on whole huge pages. */
MR_INLINE u64 mr_mapped_bytes(u64 bytes)
{
    return mr_round_up(bytes, bytes < MR_HUGE_PAGE ? MR_PAGE : MR_HUGE_PAGE);
}

/* Zeroed memory, resident from the start; NULL when there is none. Aligned to its page size. */
MR_OUTLINE void *mr_map_memory(u64 bytes)
{
    u64 size = mr_mapped_bytes(bytes);
    u64 slack = bytes < MR_HUGE_PAGE ? 0 : MR_HUGE_PAGE;
    u64 before;
    u8 *p;

    if (size == 0 || size > (1ull << 46))
        return NULL;
    p = mmap(NULL, size + slack + 2 * MR_GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (MR_GUARD) {
        /* On each side a page that is not to be touched; huge pages are not worth it here. */
        mr_forbid(p, MR_GUARD);
        mr_forbid(p + MR_GUARD + size, slack + MR_GUARD);
        for (u64 at = 0; at < size; at += MR_PAGE)
            *(volatile u8 *)(p + MR_GUARD + at) = 0;
        return p + MR_GUARD;
    }
    if (slack) {
        before = -(u64)(uintptr_t)p & (MR_HUGE_PAGE - 1);
        if (before)
            munmap(p, before);
        p += before;
        if (slack > before)
            munmap(p + size, slack - before);
        madvise(p, size, MADV_HUGEPAGE);
    }
    /* MADV_POPULATE_WRITE would do, but is younger than the kernels this runs on. */
    for (u64 at = 0; at < size; at += MR_PAGE)
        *(volatile u8 *)(p + at) = 0;
    return p;
}

MR_OUTLINE void mr_unmap_memory(void *p, u64 bytes)
{
    u64 size = mr_mapped_bytes(bytes);

    if (!p)
        return;
    if (MR_GUARD) {
        size += 2 * MR_GUARD + (bytes < MR_HUGE_PAGE ? 0 : MR_HUGE_PAGE);
        p = (u8 *)p - MR_GUARD;
        /* Whoever is given these addresses next may touch them. */
        mr_allow(p, size);
    }
    munmap(p, size);
}

/* Parts of one mapping: each begins on a cache line. */
MR_INLINE u64 mr_part(u64 bytes) { return mr_round_up(bytes, 64); }

MR_INLINE u8 *mr_take(u8 **rest, u64 bytes)
{
    u8 *p = *rest;

    *rest += mr_part(bytes);
    return p;
}

/* ---- save and load of bytes ---- */

/* Bytes of a piece. */
#define MR_SAVED_CHUNK 4096ull

/* Hands out bytes piece by piece, leaving out what is zero. */
static inline int mr_save_bytes(const u8 *bytes, u64 length, mr_saved_fn *fn, void *context)
{
    for (u64 at = 0; at < length; at += MR_SAVED_CHUNK) {
        u64 n = length - at < MR_SAVED_CHUNK ? length - at : MR_SAVED_CHUNK;
        int error = 0;

        for (u64 i = 0; i < n; i++)
            if (bytes[at + i]) {
                struct mr_saved piece = {
                    .what = MR_SAVED_BYTES, .place = at, .length = n, .value = bytes + at
                };

                error = fn(context, &piece);
                break;
            }
        if (error)
            return error;
    }
    return 0;
}

static inline int mr_load_bytes(u8 *bytes, u64 length, const struct mr_saved *piece)
{
    if (piece->place > length || piece->length > length - piece->place)
        return -E2BIG;
    memcpy(bytes + piece->place, piece->value, piece->length);
    return 0;
}

#endif
