/* Timers in the values of a map: at most one a value, 16 bytes that a program cannot touch (`struct
 * bpf_timer`). These bytes are always zero, as who looks at them from outside sees them in the kernel; what
 * a timer is set to is kept here, by the place of its entry.
 *
 * Contract, as in the kernel (kernel/bpf/helpers.c):
 *   init          -EINVAL for a clock other than CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME (all are
 *                 the packets' time), -EBUSY for a timer that is ready
 *   set_callback  -EINVAL for one that is not
 *   start         -EINVAL for unknown flags, for a timer that is not ready or has no function
 *   cancel        1 if it was running, else 0; -EINVAL if it is not ready, -EDEADLK in its own function. It
 *                 has no function afterwards.
 * An entry that is deleted, overwritten, evicted or taken anew has a timer that is not ready.
 *
 * When they fire. A timer started at t for d ns is due at t + d, and fires before the first packet at or after
 * that moment; its function is told that moment. Timers fire in the order of their moments, those of the same
 * moment in the order they were started. A timer fires once; its function may start it again, and the new
 * moment may have come, too: so a timer that starts itself every second has fired for every second that
 * lies between two packets. What is started for a moment that is not after the present one waits until after
 * the packet at hand. There is a bound: after TIMERS_AGAIN timers that were started meanwhile, those that are
 * still due are told the packet's time, and what they start waits for a later packet.
 *
 * Entries whose expiry is an event (`event` of the shape) are in the same heap: an entry that was put at t is due
 * at t + expire_after. A refresh only writes the entry's stamp; the heap has a lower bound, and learns better
 * when that comes (`timers_latest`), as in expiry.h. Events of one moment fire in the order in which the entries were
 * put. The function that is called deletes the entry; no other access finds it expired, because events fire before
 * the packet. So each entry that is not deleted has exactly one event.
 *
 * A binary heap of places, ordered by moment and start (Williams: Algorithm 232, Heapsort, CACM 1964).
 *
 * Memory, a mapping of its own: mapped(part(24 * capacity) + part(4 * capacity)), mapped and part as in base.h.
 */
#ifndef MR_TIMERS_H
#define MR_TIMERS_H

#include "../base.h"

#define TIMERS_BYTES 16u
#define TIMERS_AGAIN 4096u
#define TIMERS_ABS 1u     /* BPF_F_TIMER_ABS */
#define TIMERS_READY 1u
#define TIMERS_LAST ((u64)INT64_MAX) /* no moment is later */
#define TIMERS_PINNED 2u  /* BPF_F_TIMER_CPU_PIN */

/* All timers of an instance. */
struct alarms {
    struct mr_alarms seen;
    u64 started; /* how many have been started: their order */
    u64 until;   /* while timers fire: the time of the packet that waits */
    u64 floor;   /* where workers share state: no earlier may a timer fire, as packets did something then; else 0 */
    u32 firing;
};

struct timer {
    u64 due;      /* ns */
    u64 order;    /* among those of the same moment */
    u32 at;       /* where in the heap, from 1; 0: it is not running */
    u32 callback; /* the number of its function and 1; TIMERS_READY: none; 0: the timer is not ready */
};

struct timers {
    struct timer *timer; /* by place */
    u32 *heap;           /* places; heap[i] is due before heap[2i + 1] and heap[2i + 2] */
    struct alarms *alarms;
    u32 running;
    u32 fired; /* the place of the timer whose function is called, and 1; 0: none */
};

MR_INLINE u64 timers_part(const struct shape *s)
{
    return mr_part(sizeof(struct timer) * s->capacity) + mr_part(sizeof(u32) * s->capacity);
}

/* Whether something happens in an object at moments of its own. */
MR_INLINE int timers_any(const struct shape *s) { return s->timer || s->event; }

MR_INLINE u64 timers_bytes(const struct shape *s) { return timers_any(s) ? mr_mapped_bytes(timers_part(s)) : 0; }

MR_INLINE int timers_create(struct timers *t, const struct shape *s)
{
    u8 *memory;

    *t = (struct timers){0};
    if (!timers_any(s))
        return 0;
    memory = mr_map_memory(timers_part(s));
    if (!memory)
        return -ENOMEM;
    t->timer = (struct timer *)mr_take(&memory, sizeof(struct timer) * s->capacity);
    t->heap = (u32 *)memory;
    return 0;
}

MR_INLINE void timers_destroy(struct timers *t, const struct shape *s)
{
    if (timers_any(s))
        mr_unmap_memory(t->timer, timers_part(s));
    *t = (struct timers){0};
}

/* ---- the heap ---- */

MR_INLINE int timers_before(const struct timer *a, const struct timer *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

MR_INLINE void timers_put(struct timers *t, u32 at, u32 place)
{
    t->heap[at] = place;
    t->timer[place].at = at + 1;
}

/* Moves what is to be at `at` to where it belongs. */
static inline void timers_sift(struct timers *t, u32 at, u32 place)
{
    const struct timer *moved = &t->timer[place];

    while (at > 0 && timers_before(moved, &t->timer[t->heap[(at - 1) / 2]])) {
        timers_put(t, at, t->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        u64 child = 2 * (u64)at + 1;

        if (child + 1 < t->running &&
            timers_before(&t->timer[t->heap[child + 1]], &t->timer[t->heap[child]]))
            child++;
        if (child >= t->running || !timers_before(&t->timer[t->heap[child]], moved))
            break;
        timers_put(t, at, t->heap[child]);
        at = (u32)child;
    }
    timers_put(t, at, place);
}

MR_OUTLINE void timers_stop(struct timers *t, u32 place)
{
    u32 at = t->timer[place].at;
    u32 last;

    if (at == 0)
        return;
    t->timer[place].at = 0;
    last = t->heap[--t->running];
    if (last != place)
        timers_sift(t, at - 1, last);
}

/* The entry at a place is no longer what it was: its timer is as new. `value` is where its value is. */
MR_INLINE void timers_forget(struct timers *t, const struct shape *s, u64 place, u8 *value)
{
    if (!s->timer)
        return;
    timers_stop(t, (u32)place);
    t->timer[place] = (struct timer){0};
    memset(value + s->timer - 1, 0, TIMERS_BYTES);
    /* A timer that comes to this place while the former one's function runs is another one. */
    if (t->fired == place + 1)
        t->fired = 0;
}

/* ---- events ---- */

/* An entry was put at this place whose expiry is an event, due at `due` if nothing refreshes it. */
MR_OUTLINE void timers_arm(struct timers *t, const struct shape *s, u32 place, u64 due)
{
    struct timer *timer = &t->timer[place];
    struct alarms *alarms = t->alarms;

    *timer = (struct timer){
        .due = due < TIMERS_LAST ? due : TIMERS_LAST,
        .order = alarms->started++,
        .callback = s->event + 1,
    };
    if (timer->due < alarms->seen.next)
        alarms->seen.next = timer->due;
    timers_sift(t, t->running++, place);
}

/* That entry is there no more. */
MR_INLINE void timers_disarm(struct timers *t, const struct shape *s, u32 place)
{
    if (!s->event)
        return;
    timers_stop(t, place);
    t->timer[place] = (struct timer){0};
    if (t->fired == place + 1)
        t->fired = 0;
}

/* ---- helpers; each kind finds the place from the timer's address ---- */

MR_INLINE u64 timers_init(struct timers *t, u64 place, u64 flags)
{
    struct timer *timer = &t->timer[place];

    if (flags != 0 && flags != 1 && flags != 7)
        return mr_errno(EINVAL);
    if (timer->callback)
        return mr_errno(EBUSY);
    timer->callback = TIMERS_READY;
    return 0;
}

MR_INLINE u64 timers_set_callback(struct timers *t, u64 place, u64 callback)
{
    struct timer *timer = &t->timer[place];

    if (!timer->callback)
        return mr_errno(EINVAL);
    timer->callback = (u32)callback + 1;
    return 0;
}

/* The moment that a timer is started for. Time is a signed number (ktime_t), and never negative: a moment above
 * INT64_MAX is one before all others, a sum that is greater is the last there is (`ktime_add_safe`). */
MR_INLINE u64 timers_moment(u64 ns, u64 flags, u64 now)
{
    if (flags & TIMERS_ABS)
        return ns > TIMERS_LAST ? 0 : ns;
    return now >= TIMERS_LAST || ns > TIMERS_LAST - now ? TIMERS_LAST : now + ns;
}

MR_OUTLINE u64 timers_start(struct timers *t, u32 place, u64 ns, u64 flags, u64 now)
{
    struct timer *timer = &t->timer[place];
    struct alarms *alarms = t->alarms;
    u64 due = timers_moment(ns, flags, now);

    if (flags & ~(u64)(TIMERS_ABS | TIMERS_PINNED) || timer->callback <= TIMERS_READY)
        return mr_errno(EINVAL);
    if (due < now)
        due = now;
    if (alarms->firing && due <= now)
        due = alarms->until < TIMERS_LAST ? alarms->until + 1 : TIMERS_LAST;
    timers_stop(t, place);
    timer->due = due;
    timer->order = alarms->started++;
    if (due < alarms->seen.next)
        alarms->seen.next = due;
    timers_sift(t, t->running++, place);
    return 0;
}

MR_INLINE u64 timers_cancel(struct timers *t, u64 place)
{
    struct timer *timer = &t->timer[place];
    u64 ran = timer->at != 0;

    if (!timer->callback)
        return mr_errno(EINVAL);
    if (t->fired == place + 1)
        return mr_errno(EDEADLK);
    timers_stop(t, (u32)place);
    timer->callback = TIMERS_READY;
    return ran;
}

/* The place of the timer whose function is called; no map has so many entries that UINT32_MAX is one. */
MR_INLINE u64 timers_fired(const struct timers *t) { return t->fired ? t->fired - 1 : UINT32_MAX; }

/* ---- firing ---- */

MR_INLINE void timers_begin(struct alarms *alarms)
{
    *alarms = (struct alarms){.seen = {.next = UINT64_MAX}};
}

/* Calls a function for the timer that fires in the `map`-th of the maps. */
typedef void timers_call(struct mr_instance *self, u32 map, u32 function, struct mr_packet *pkt);

/* When the entry at this place of the `map`-th of the maps expires, by its stamp: of those whose expiry is an event. */
typedef u64 timers_latest(struct mr_instance *self, u32 map, u32 place);

#define TIMERS_CALL(map, function) ((u64)(map) << 32 | (function))

/* The timer that is due first; only where one is running. */
MR_INLINE struct timer *timers_top(const struct timers *t) { return &t->timer[t->heap[0]]; }

/* Which of the maps has the timer that is due first; n: none is running. */
MR_INLINE u32 timers_first(struct timers *const *all, u32 n)
{
    u32 first = n;

    for (u32 i = 0; i < n; i++)
        if (all[i]->running && (first == n || timers_before(timers_top(all[i]), timers_top(all[first]))))
            first = i;
    return first;
}

/* Fires what is due at the time of this packet, before it. */
static inline void timers_fire(struct timers *const *all, u32 n, struct alarms *alarms,
                               struct mr_instance *self, const struct mr_packet *packet, timers_call *call,
                               timers_latest *latest)
{
    u32 map;
    u64 mark = alarms->started;
    u32 again = 0;
    int late = 0;

    alarms->until = packet->time;
    alarms->firing = 1;
    while ((map = timers_first(all, n)) < n) {
        struct timers *first = all[map];
        u32 place = first->heap[0];
        struct timer *timer = &first->timer[place];
        u8 nothing[1] = {0};
        struct mr_packet pkt = {
            .data = nothing,
            .end = nothing,
            .meta = nothing,
            .floor = nothing,
            .ceiling = nothing,
            .bared = nothing,
            .number = alarms->seen.fired,
            .ports = packet->ports,
            .cpu = packet->cpu,
            .core = packet->core,
            .undo = packet->undo, /* where packets are transactions: whose */
        };

        if (timer->due > packet->time)
            break;
        if (latest) {
            u64 due = latest(self, map, place);

            if (due > TIMERS_LAST)
                due = TIMERS_LAST;
            if (due > timer->due) {
                timer->due = due;
                timers_sift(first, 0, place);
                continue;
            }
        }
        if (timer->order >= mark) {
            if (late)
                break;
            if (again++ == TIMERS_AGAIN) {
                late = 1;
                mark = alarms->started;
            }
        }
        pkt.time = late ? packet->time : timer->due < alarms->floor ? alarms->floor : timer->due;
        timers_stop(first, place);
        first->fired = place + 1;
        alarms->seen.fired++;
        call(self, map, timer->callback - 1, &pkt);
        first->fired = 0;
    }
    alarms->firing = 0;
    alarms->seen.next = map < n ? timers_top(all[map])->due : UINT64_MAX;
}

/* ---- save and load ---- */

/* What a head says of the timers of all maps. */
MR_INLINE void timers_save_head(const struct timers *t, const struct shape *s, struct mr_saved *piece)
{
    if (!timers_any(s))
        return;
    piece->due = t->alarms->seen.fired;
    piece->order = t->alarms->started;
}

MR_INLINE void timers_save(const struct timers *t, const struct shape *s, u64 place, struct mr_saved *piece)
{
    piece->due = UINT64_MAX;
    if (!timers_any(s))
        return;
    piece->callback = t->timer[place].callback;
    if (!t->timer[place].at)
        return;
    piece->due = t->timer[place].due;
    piece->order = t->timer[place].order;
}

static inline void timers_load_head(struct timers *t, const struct shape *s, const struct mr_saved *piece)
{
    if (!timers_any(s))
        return;
    memset(t->timer, 0, sizeof(struct timer) * s->capacity);
    t->running = 0;
    t->fired = 0;
    if (piece->due > t->alarms->seen.fired)
        t->alarms->seen.fired = piece->due;
    /* So that no number of starts can overflow. */
    if (piece->order > t->alarms->started && piece->order <= TIMERS_LAST)
        t->alarms->started = piece->order;
}

/* `value` is where the entry's value is. A function that there is not does nothing. */
static inline int timers_load(struct timers *t, const struct shape *s, u64 place, u8 *value,
                              const struct mr_saved *piece)
{
    struct timer *timer;

    if (!timers_any(s))
        return piece->callback ? -EINVAL : 0;
    timer = &t->timer[place];
    if (timer->callback)
        return -EEXIST;
    if (s->timer)
        memset(value + s->timer - 1, 0, TIMERS_BYTES);
    if (piece->due != UINT64_MAX &&
        (piece->callback <= TIMERS_READY || piece->due > TIMERS_LAST || piece->order >= t->alarms->started))
        return -EINVAL;
    timer->callback = piece->callback;
    if (piece->due == UINT64_MAX)
        return 0;
    timer->due = piece->due;
    timer->order = piece->order;
    if (timer->due < t->alarms->seen.next)
        t->alarms->seen.next = timer->due;
    timers_sift(t, t->running++, (u32)place);
    return 0;
}

#endif
