/* allocator: leases the numbers first to first + capacity - 1, each with a value.
 *
 * Contract. A lease ends when it is freed, or when its age reaches `expire_after`, from that moment at
 * any access; a refresh makes its age 0. `allocator_lease` fails (-1) only when every number is leased.
 *
 * Which number: one that was never leased, from `first` upward; then the one that has been free the
 * longest, an expired lease counting as free from the moment it expired, the lower number first where
 * two became free at once. A port or an address thus rests as long as it can before somebody else
 * gets it, which is what keeps late packets of its last owner apart from its next. The order can be
 * foretold by who watches; RFC 6056 section 3.1 weighs this against early reuse for ports. A function
 * that must hide its ports from off-path attackers permutes the numbers. It depends on the operations and their times
 * only, not on when anything was reclaimed.
 *
 * Time that goes back: stamps do not (expiry.h); numbers freed then are ordered as they were freed.
 *
 * Cost: get and refresh touch the entry's line and 4 bytes beside it. A lease moves the head of a list or takes the least of the
 * queue of expiry.h, O(log4 capacity).
 *
 * Shared: these functions are for who has all lines of the lock; sync/allocator.h is for who has one.
 *
 * Homes: where the shape has some, a lease takes the number that has been free the longest among those of the packet's own
 * index (homes.h), and fails when none of these is free. What has expired is put on the lists before anything is leased or
 * freed, O(log4 capacity) for each, so that the order on a list is the one above. Not shared.
 *
 * Memory: bytes = mapped(stride * capacity + 4 * capacity + expiry), each rounded up to 64, expiry as in
 * expiry.h when `expire_after` > 0, else 0. stride: 8 + round_up(value_bytes, 8); up to 64 the next
 * power of two, above it the next multiple of 64. Shared: and that of stamps.h. Noted: and that of notes.h.
 */
#ifndef MR_ALLOCATOR_H
#define MR_ALLOCATOR_H

#include "../sync/stamps.h"
#include "expiry.h"
#include "homes.h"
#include "notes.h"

#define ALLOCATOR_FREE HOMES_FREE /* of a link: not leased; the rest names the next on the list */
#define ALLOCATOR_NIL HOMES_NIL

struct allocator {
    u8 *slab;    /* entries { u64 stamp, or since when it is free; value } */
    u32 *link;   /* leased: the place in the queue of those that expire, else 0 */
    u32 first;   /* of the freed, the one that was freed first, or ALLOCATOR_NIL */
    u32 last;
    u32 fresh;   /* numbers from here on were never leased */
    u32 leased;  /* and not freed; some of these may have expired */
    u64 settled; /* the least bound, when it was last found to be exact */
    u64 full;    /* leases so far that found no number */
    struct expiry expiry;
    struct stamps stamps; /* of shared ones: by index, if they expire */
    struct notes notes;
    u8 key[8];            /* of the piece that `changes` hands out */
    struct homes homes;   /* where the shape has some; `first`, `last` and `fresh` then say nothing */
};

MR_INLINE u64 allocator_stride(const struct shape *s)
{
    u64 raw = 8 + mr_round_up(s->value_bytes, 8) + MR_GAP;

    return raw <= 64 ? mr_power_of_two(raw) : mr_round_up(raw, 64);
}

MR_INLINE u64 allocator_part(const struct shape *s)
{
    return mr_part(allocator_stride(s) * s->capacity) + mr_part(4 * s->capacity) +
           (s->expire_after ? expiry_part(s) : 0);
}

MR_INLINE u64 allocator_bytes(const struct shape *s) { return mr_mapped_bytes(allocator_part(s)); }

static inline int allocator_create(struct allocator *a, const struct shape *s,
                                   const struct mr_config *config, const u8 *initial)
{
    u8 *memory;
    int error;

    (void)initial;
    *a = (struct allocator){0};
    if (s->capacity == 0)
        return -EINVAL;
    if (s->capacity > MR_CAPACITY_MAX)
        return -E2BIG;
    /* -1 says that none is free, so that no number may look like it. */
    if (s->first > INT64_MAX - s->capacity)
        return -EINVAL;
    if (s->homes && s->shared)
        return -EINVAL;
    memory = mr_map_memory(allocator_part(s));
    if (!memory)
        return -ENOMEM;
    if (s->shared) {
        error = stamps_create(&a->stamps, s->expire_after ? s->capacity : 0, config->workers);
        if (error) {
            mr_unmap_memory(memory, allocator_part(s));
            return error;
        }
    }
    a->slab = mr_take(&memory, allocator_stride(s) * s->capacity);
    a->link = (u32 *)mr_take(&memory, 4 * s->capacity);
    a->first = a->last = ALLOCATOR_NIL;
    for (u32 i = 0; i < s->capacity; i++)
        a->link[i] = ALLOCATOR_FREE | ALLOCATOR_NIL;
    for (u32 i = 0; MR_GAP && i < s->capacity; i++) {
        u64 used = 8 + s->value_bytes;

        mr_forbid(a->slab + i * allocator_stride(s) + used, allocator_stride(s) - used);
    }
    if (s->expire_after)
        expiry_create(&a->expiry, s, a->link, &memory);
    if (s->homes) {
        error = homes_create(&a->homes, s, config, a->link);
        if (error) {
            mr_unmap_memory(a->slab, allocator_part(s));
            return error;
        }
        a->fresh = (u32)s->capacity;
    }
    error = notes_create(&a->notes, s);
    if (error) {
        if (s->homes)
            homes_destroy(&a->homes, s);
        mr_unmap_memory(a->slab, allocator_part(s));
    }
    return error;
}

static inline void allocator_destroy(struct allocator *a, const struct shape *s)
{
    if (s->homes)
        homes_destroy(&a->homes, s);
    mr_unmap_memory(a->slab, allocator_part(s));
    if (s->shared)
        stamps_destroy(&a->stamps);
    notes_destroy(&a->notes, s);
    *a = (struct allocator){0};
}

MR_INLINE u8 *allocator_entry(const struct allocator *a, const struct shape *s, u32 index)
{
    return a->slab + (u64)index * allocator_stride(s);
}

MR_INLINE u64 *allocator_stamp(const struct allocator *a, const struct shape *s, u32 index)
{
    return (u64 *)allocator_entry(a, s, index);
}

/* The latest stamp of a lease. */
MR_INLINE u64 allocator_latest(const struct allocator *a, const struct shape *s, u32 index)
{
    if (s->shared && s->expire_after)
        stamps_join(&a->stamps, index, allocator_stamp(a, s, index));
    return *allocator_stamp(a, s, index);
}

MR_INLINE int allocator_leased(const struct allocator *a, const struct shape *s, u32 index, u64 now)
{
    return !(a->link[index] & ALLOCATOR_FREE) &&
           !(s->expire_after && expiry_over(allocator_latest(a, s, index), s->expire_after, now));
}

/* The entry of a number that is leased, or NULL. */
MR_INLINE u8 *allocator_find(const struct allocator *a, const struct shape *s, u64 number, u64 now)
{
    u64 index = number - s->first;

    if (index >= s->capacity || !allocator_leased(a, s, (u32)index, now))
        return NULL;
    return allocator_entry(a, s, (u32)index);
}

/* Mends up to `budget` bounds, until the least is exact: then it is the lease that expires first. */
MR_OUTLINE void allocator_mend(struct allocator *a, const struct shape *s, u64 now, u64 budget)
{
    for (; budget > 0 && expiry_any(&a->expiry, now); budget--) {
        struct expiry_item *least = &a->expiry.item[0];
        u64 due = expiry_due(allocator_latest(a, s, least->index), s->expire_after);

        if (due == least->due) {
            a->settled = due;
            break;
        }
        expiry_mend(&a->expiry, due);
    }
}

/* A lease's first stamp. */
MR_INLINE void allocator_begin(struct allocator *a, const struct shape *s, u32 index, u64 now)
{
    *allocator_stamp(a, s, index) = now;
    notes_add(&a->notes, s, index, 0);
    if (s->shared && s->expire_after)
        stamps_forget(&a->stamps, index);
}

/* An index to lease, or MR_NONE. Whichever became free first: the head of the freed, or the first of
 * the expired, which stay in the queue until they are wanted. */
MR_OUTLINE u32 allocator_claim(struct allocator *a, const struct shape *s, u64 now)
{
    u32 index = a->first;
    int expired = 0;

    if (a->fresh < s->capacity) {
        index = a->fresh++;
    } else {
        if (s->expire_after) {
            allocator_mend(a, s, now, UINT64_MAX);
            expired = expiry_any(&a->expiry, now);
        }
        if (expired) {
            const struct expiry_item *least = &a->expiry.item[0];
            u64 since = index == ALLOCATOR_NIL ? 0 : *allocator_stamp(a, s, index);

            expired = index == ALLOCATOR_NIL || least->due < since ||
                      (least->due == since && least->index < index);
        }
        if (expired) {
            index = a->expiry.item[0].index;
            expiry_remove(&a->expiry, index);
            a->leased--;
        } else if (index != ALLOCATOR_NIL) {
            a->first = a->link[index] & ~ALLOCATOR_FREE;
            if (a->first == ALLOCATOR_NIL)
                a->last = ALLOCATOR_NIL;
        } else {
            return MR_NONE;
        }
    }
    a->link[index] = 0;
    a->leased++;
    allocator_begin(a, s, index, now);
    if (s->expire_after)
        expiry_push(&a->expiry, index, expiry_due(now, s->expire_after));
    return index;
}

/* Puts a number behind those that are free. */
MR_INLINE void allocator_append(struct allocator *a, const struct shape *s, u32 index, u64 now)
{
    *allocator_stamp(a, s, index) = now;
    notes_add(&a->notes, s, index, 0);
    if (s->homes) {
        homes_append(&a->homes, a->link, index);
        return;
    }
    a->link[index] = ALLOCATOR_FREE | ALLOCATOR_NIL;
    if (a->last == ALLOCATOR_NIL)
        a->first = index;
    else
        a->link[a->last] = ALLOCATOR_FREE | index;
    a->last = index;
}

/* Puts all that has expired on the lists of their homes, in the order in which it did. */
MR_OUTLINE void allocator_reclaim(struct allocator *a, const struct shape *s, u64 now)
{
    if (!s->expire_after)
        return;
    for (;;) {
        struct expiry_item least;

        allocator_mend(a, s, now, UINT64_MAX);
        if (!expiry_any(&a->expiry, now))
            break;
        least = a->expiry.item[0];
        expiry_remove(&a->expiry, least.index);
        a->leased--;
        allocator_append(a, s, least.index, least.due);
    }
}

/* A number to lease to a packet of this home, or MR_NONE. */
MR_OUTLINE u32 allocator_claim_home(struct allocator *a, const struct shape *s, u64 now, u32 home)
{
    u32 index;

    allocator_reclaim(a, s, now);
    index = homes_take(&a->homes, s, a->link, home);
    if (index == MR_NONE)
        return MR_NONE;
    a->link[index] = 0;
    a->leased++;
    allocator_begin(a, s, index, now);
    if (s->expire_after)
        expiry_push(&a->expiry, index, expiry_due(now, s->expire_after));
    return index;
}

MR_OUTLINE void allocator_return(struct allocator *a, const struct shape *s, u32 index, u64 now)
{
    if (s->homes)
        allocator_reclaim(a, s, now);
    if (s->expire_after)
        expiry_remove(&a->expiry, index);
    allocator_append(a, s, index, now);
    a->leased--;
}

/* ---- for the prefetching passes: the token is the number, one touch is all there is ---- */

MR_INLINE u64 allocator_token(const struct allocator *a, const struct shape *s, const u64 *key)
{
    (void)a;
    (void)s;
    return key[0];
}

MR_INLINE void allocator_prefetch(const struct allocator *a, const struct shape *s, u64 token)
{
    u64 index = token - s->first < s->capacity ? token - s->first : 0;
    u64 touched = 8 + s->value_bytes;

    mr_prefetch(&a->link[index]);
    mr_prefetch_range(allocator_entry(a, s, (u32)index), touched <= 256 ? touched : 256);
}

MR_INLINE u64 allocator_prefetch_entry(const struct allocator *a, const struct shape *s, u64 token)
{
    (void)a;
    (void)s;
    return token;
}

MR_INLINE int allocator_cold(const struct allocator *a, const struct shape *s)
{
    return a->leased * (allocator_stride(s) + sizeof(u32)) > MR_CACHE_BYTES;
}

/* Whether there is something for `age` to look at: an expired lease stays where it is until it is wanted. */
MR_INLINE int allocator_due(const struct allocator *a, const struct shape *s, u64 now)
{
    return s->expire_after && expiry_any(&a->expiry, expiry_late(s->expire_after, now)) &&
           a->expiry.item[0].due != a->settled;
}

MR_INLINE void allocator_age(struct allocator *a, const struct shape *s, u64 now)
{
    if (s->expire_after && mr_unlikely(expiry_any(&a->expiry, now)))
        allocator_mend(a, s, now, EXPIRY_BUDGET);
}

/* ---- handlers ---- */

MR_INLINE u64 allocator_allocator_lease(struct allocator *a, const struct shape *s, const u8 *value,
                                        struct mr_packet *pkt)
{
    u32 index = s->homes ? allocator_claim_home(a, s, pkt->time, pkt->home) :
                           allocator_claim(a, s, pkt->time);

    if (mr_unlikely(index == MR_NONE)) {
        a->full++;
        return UINT64_MAX;
    }
    memcpy(allocator_entry(a, s, index) + 8, value, s->value_bytes);
    return s->first + index;
}

MR_INLINE u8 *allocator_allocator_get(struct allocator *a, const struct shape *s, u64 number,
                                      struct mr_packet *pkt)
{
    u8 *entry = allocator_find(a, s, number, pkt->time);

    return entry ? entry + 8 : NULL;
}

MR_INLINE u8 *allocator_allocator_refresh(struct allocator *a, const struct shape *s, u64 number,
                                          struct mr_packet *pkt)
{
    u8 *entry = allocator_find(a, s, number, pkt->time);

    if (!entry)
        return NULL;
    if (s->expire_after && pkt->time > *(u64 *)entry) {
        notes_refresh(&a->notes, s, (u32)(number - s->first), *(u64 *)entry, pkt->time);
        *(u64 *)entry = pkt->time;
    }
    return entry + 8;
}

/* A lease that has expired is not freed again: it is in the order by the time it expired. */
MR_INLINE u64 allocator_allocator_free(struct allocator *a, const struct shape *s, u64 number,
                                       struct mr_packet *pkt)
{
    if (!allocator_find(a, s, number, pkt->time))
        return 0;
    allocator_return(a, s, (u32)(number - s->first), pkt->time);
    return 1;
}

/* ---- control, between bursts; the key is the number, as many of its bytes as `key_bytes` ---- */

static inline u64 allocator_count(struct allocator *a, const struct shape *s, u64 now)
{
    u64 count = 0;

    for (u32 i = 0; i < a->fresh; i++)
        count += allocator_leased(a, s, i, now);
    return count;
}

static inline u64 allocator_used(struct allocator *a, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return a->leased;
}

/* Leases so far that found no number: of their home, where there are homes. */
static inline u64 allocator_full(struct allocator *a, const struct shape *s, u64 now)
{
    (void)s;
    (void)now;
    return a->full + stamps_refused(&a->stamps);
}

static inline int allocator_get(struct allocator *a, const struct shape *s, const u8 *key, u8 *value,
                                u64 now)
{
    u8 *entry = allocator_find(a, s, mr_number(s, key), now);

    if (!entry)
        return -ENOENT;
    memcpy(value, entry + 8, s->value_bytes);
    return 0;
}

/* Takes a number from among the free, which are looked through; it may have expired, too. */
static inline void allocator_take(struct allocator *a, const struct shape *s, u32 index, u64 now)
{
    u32 before = ALLOCATOR_NIL, next;

    if (index >= a->fresh) {
        for (; a->fresh < index; a->fresh++)
            allocator_append(a, s, a->fresh, now);
        a->fresh++;
    } else if (a->link[index] & ALLOCATOR_FREE && s->homes) {
        homes_unlink(&a->homes, a->link, index);
    } else if (a->link[index] & ALLOCATOR_FREE) {
        for (u32 i = a->first; i != index; i = a->link[i] & ~ALLOCATOR_FREE)
            before = i;
        next = a->link[index] & ~ALLOCATOR_FREE;
        if (before == ALLOCATOR_NIL)
            a->first = next;
        else
            a->link[before] = ALLOCATOR_FREE | next;
        if (next == ALLOCATOR_NIL)
            a->last = before;
    } else {
        expiry_remove(&a->expiry, index);
        a->leased--;
    }
    a->link[index] = 0;
    a->leased++;
    allocator_begin(a, s, index, now);
    if (s->expire_after)
        expiry_push(&a->expiry, index, expiry_due(now, s->expire_after));
}

/* Changes the value of a lease, or leases this number: state that is handed in from outside. Numbers below
 * it that were never leased count as given back now, in their order. */
static inline int allocator_set(struct allocator *a, const struct shape *s, const u8 *key,
                                const u8 *value, u64 now)
{
    u64 index = mr_number(s, key) - s->first;

    if (index >= s->capacity)
        return -ENOENT;
    if (!allocator_leased(a, s, (u32)index, now))
        allocator_take(a, s, (u32)index, now);
    memcpy(allocator_entry(a, s, (u32)index) + 8, value, s->value_bytes);
    notes_add(&a->notes, s, (u32)index, 0);
    return 0;
}

static inline int allocator_remove(struct allocator *a, const struct shape *s, const u8 *key, u64 now)
{
    struct mr_packet pkt = { .time = now };

    return allocator_allocator_free(a, s, mr_number(s, key), &pkt) ? 0 : -ENOENT;
}

static inline int allocator_next(struct allocator *a, const struct shape *s, u64 *cursor, u8 *key,
                                 u8 *value, u64 now)
{
    for (u64 i = *cursor; i < a->fresh; i++) {
        if (!allocator_leased(a, s, (u32)i, now))
            continue;
        mr_number_out(s, key, s->first + i);
        memcpy(value, allocator_entry(a, s, (u32)i) + 8, s->value_bytes);
        *cursor = i + 1;
        return 0;
    }
    return -ENOENT;
}

/* ---- save and load: numbers stay leased, and the others free since when and in the order they were ----
 *
 * The place of a head is the first number that was never leased, its bound the first number of all. */

/* While an allocator is loaded, a link of a number of which nothing has been said. */
#define ALLOCATOR_UNSAID (ALLOCATOR_FREE | 0x7ffffffeu)

static inline int allocator_save_list(const struct allocator *a, const struct shape *s, u32 first, mr_saved_fn *fn,
                                      void *context)
{
    for (u32 i = first; i != ALLOCATOR_NIL; i = a->link[i] & ~ALLOCATOR_FREE) {
        struct mr_saved piece = {
            .what = MR_SAVED_FREE, .place = i, .length = 1, .stamp = *allocator_stamp(a, s, i)
        };
        int error = fn(context, &piece);

        if (error)
            return error;
    }
    return 0;
}

static inline int allocator_save(struct allocator *a, const struct shape *s, mr_saved_fn *fn, void *context)
{
    struct mr_saved head = {
        .what = MR_SAVED_HEAD, .place = a->fresh, .stamp = allocator_full(a, s, 0), .bound = s->first,
        .length = s->capacity
    };
    int error = fn(context, &head);

    for (u32 i = 0; !error && i < a->fresh; i++) {
        struct mr_saved piece = { .what = MR_SAVED_ENTRY, .place = i, .due = UINT64_MAX, .length = s->value_bytes };

        if (a->link[i] & ALLOCATOR_FREE)
            continue;
        if (s->expire_after) {
            piece.stamp = allocator_latest(a, s, i);
            piece.bound = a->expiry.item[a->expiry.place[i]].due;
        }
        piece.value = allocator_entry(a, s, i) + 8;
        error = fn(context, &piece);
    }
    if (!s->homes && !error)
        error = allocator_save_list(a, s, a->first, fn, context);
    for (u32 i = 0; !error && i < s->homes; i++)
        error = allocator_save_list(a, s, a->homes.first[i], fn, context);
    return error ? error : fn(context, &(struct mr_saved){ .what = MR_SAVED_END });
}

/* Of a shape with `noted`, which is not shared: a number that is leased, with its number as the key and its home as `order`; 0 where it is
 * free. */
static inline int allocator_noted_piece(struct allocator *a, const struct shape *s, u32 index, struct mr_saved *piece)
{
    if (a->link[index] & ALLOCATOR_FREE)
        return 0;
    *piece = (struct mr_saved){ .what = MR_SAVED_ENTRY, .place = index, .due = UINT64_MAX };
    if (s->homes)
        piece->order = a->homes.of[index];
    if (s->expire_after) {
        piece->stamp = *allocator_stamp(a, s, index);
    }
    piece->key = a->key;
    mr_number_out(s, a->key, s->first + index);
    piece->value = allocator_entry(a, s, index) + 8;
    return 1;
}

MR_INLINE void allocator_noted_prefetch(const struct allocator *a, const struct shape *s, u32 index)
{
    mr_prefetch(&a->link[index]);
    mr_prefetch(allocator_entry(a, s, index));
}

NOTES_CHANGES(allocator)

/* A value that `p` points into is written. */
MR_INLINE void allocator_written(struct allocator *a, const struct shape *s, const u8 *p)
{
    notes_add(&a->notes, s, (u32)((u64)(p - a->slab) / allocator_stride(s)), 0);
}

/* Of homes alone. */
static inline int allocator_list(struct allocator *a, const struct shape *s, u64 from, u64 to, mr_saved_fn *fn,
                                 void *context)
{
    u8 key[8];
    int error = 0;

    if (!s->homes)
        return -EINVAL;
    to = to < s->homes ? to : s->homes;
    for (u32 i = 0; !error && from < to && i < s->capacity; i++) {
        struct mr_saved piece = { .what = MR_SAVED_ENTRY, .place = i, .due = UINT64_MAX, .length = s->value_bytes };

        if (a->link[i] & ALLOCATOR_FREE || a->homes.of[i] < from || a->homes.of[i] >= to)
            continue;
        if (s->expire_after) {
            piece.stamp = allocator_latest(a, s, i);
            piece.bound = a->expiry.item[a->expiry.place[i]].due;
        }
        mr_number_out(s, key, s->first + i);
        piece.key = key;
        piece.value = allocator_entry(a, s, i) + 8;
        error = fn(context, &piece);
    }
    for (u64 at = from; !error && at < to; at++)
        error = allocator_save_list(a, s, a->homes.first[at], fn, context);
    return error;
}

/* Of homes alone: elsewhere numbers are divided, and this one is not among those that are leased here. */
static inline int allocator_put(struct allocator *a, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    u32 index = (u32)piece->place;
    u64 stamp = piece->bound || piece->what == MR_SAVED_FREE ? piece->stamp : now;

    if (!s->homes || piece->place >= s->capacity)
        return -EINVAL;
    if (allocator_leased(a, s, index, now))
        return -EEXIST;
    switch (piece->what) {
    case MR_SAVED_ENTRY:
        allocator_take(a, s, index, stamp);
        memcpy(allocator_entry(a, s, index) + 8, piece->value, s->value_bytes);
        return 0;
    case MR_SAVED_FREE:
        if (a->link[index] & ALLOCATOR_FREE) {
            homes_unlink(&a->homes, a->link, index);
        } else {
            expiry_remove(&a->expiry, index);
            a->leased--;
        }
        allocator_append(a, s, index, stamp);
        return 0;
    default:
        return -EINVAL;
    }
}

static inline int allocator_load_head(struct allocator *a, const struct shape *s, const struct mr_saved *piece)
{
    if (piece->bound != s->first)
        return -EDOM;
    if (piece->place > s->capacity)
        return -E2BIG;
    for (u32 i = 0; i < s->capacity; i++)
        a->link[i] = ALLOCATOR_UNSAID;
    for (u32 i = 0; i < s->homes; i++)
        a->homes.first[i] = a->homes.last[i] = HOMES_NIL;
    a->first = a->last = ALLOCATOR_NIL;
    a->fresh = (u32)piece->place;
    a->leased = 0;
    a->settled = 0;
    a->full = piece->stamp;
    a->expiry.count = 0;
    stamps_clear(&a->stamps);
    return 0;
}

static inline int allocator_load_entry(struct allocator *a, const struct shape *s, const struct mr_saved *piece,
                                       u64 now)
{
    u32 index = (u32)piece->place;
    u64 stamp = piece->bound ? piece->stamp : now;

    if (piece->place >= a->fresh)
        return -E2BIG;
    if (a->link[index] != ALLOCATOR_UNSAID)
        return -EEXIST;
    a->link[index] = 0;
    a->leased++;
    allocator_begin(a, s, index, stamp);
    if (s->expire_after)
        expiry_load(&a->expiry, s, index, stamp, piece->bound);
    memcpy(allocator_entry(a, s, index) + 8, piece->value, s->value_bytes);
    return 0;
}

/* Every number that was ever leased is leased or free now. Where more fit than before, these come last. */
static inline int allocator_load_end(struct allocator *a, const struct shape *s)
{
    for (u32 i = 0; i < a->fresh; i++)
        if (a->link[i] == ALLOCATOR_UNSAID)
            return -EINVAL;
    for (u32 i = a->fresh; i < s->capacity; i++) {
        a->link[i] = ALLOCATOR_FREE | ALLOCATOR_NIL;
        if (s->homes)
            homes_append(&a->homes, a->link, i);
    }
    if (s->homes)
        a->fresh = (u32)s->capacity;
    return 0;
}

static inline int allocator_load(struct allocator *a, const struct shape *s, const struct mr_saved *piece, u64 now)
{
    switch (piece->what) {
    case MR_SAVED_HEAD:
        return allocator_load_head(a, s, piece);
    case MR_SAVED_ENTRY:
        return allocator_load_entry(a, s, piece, now);
    case MR_SAVED_FREE:
        if (piece->place >= a->fresh || piece->length != 1)
            return -E2BIG;
        if (a->link[piece->place] != ALLOCATOR_UNSAID)
            return -EEXIST;
        allocator_append(a, s, (u32)piece->place, piece->stamp);
        return 0;
    case MR_SAVED_END:
        return allocator_load_end(a, s);
    default:
        return -EINVAL;
    }
}

#endif
