/* transact: optimistic packets. Each entry and each bucket of an object that workers share has a version word in place;
 * a packet notes the words that it read, keeps what it writes to itself, and at its end takes the words that it writes,
 * looks whether those that it read are still what they were, and only then shows what it did.
 *
 * After Silo (Tu et al., Speedy Transactions in Multicore In-Memory Databases, SOSP 2013, section 4.4), without its
 * epochs: 1. take the words to write in the order of their addresses, each from the value that was seen; 2. load the
 * words that were read: still what was seen, and nobody else's; 3. apply; 4. release with the next version. Between 1
 * and 2 there is an instant at which all words that the packet read or writes are what it saw, so that packets are
 * strictly serialisable: in the order of these instants. Two packets that each read what the other writes cannot
 * both pass: each takes its word before it loads the other's, and both operations are sequentially consistent.
 *
 * What was absent is covered by the word of its bucket, which every insertion and removal there writes. A packet may meet
 * a state that never was, as only its end looks; `check` proved its program safe for any values.
 *
 * A burst holds the core's line (lock.h), so who has all lines is the only one at work. That is the fallback:
 * after TRANSACT_HOLD attempts a packet takes all words that it met the last time, in the order of addresses, waiting
 * for each, before it begins; after TRANSACT_ALONE, or where an operation or the room in this struct asks for it, it takes
 * all lines, first come first served. No deadlock: who takes words to commit waits for none of them; who waits for words
 * has none with a greater address, and gives way at a mark (below); who waits for lines has no words and not its own line.
 *
 * Marks. TRANSACT_DYING on an entry says that a core decides whether it has expired (state/transact_map.h). A packet that
 * read the word before cannot commit any more; one that committed before the mark may still write its stamp, so the core
 * passes through every other line before it looks at the stamps (`transact_grace`).
 *
 * Time. Where programs compute with the packet's time, an entry has the time of the packet that wrote it last; a packet that
 * came earlier and reads it runs again at that time, and a packet that runs alone is no earlier than any packet before it
 * (lock.h). So a program that subtracts what it finds in state from its own time never gets a negative number. A packet that
 * overwrites what a later one only read keeps its time: to know of that, readers would have to write.
 *
 * A packet that only reads executes no atomic read-modify-write. Words and orders of memory: words.h.
 */
#ifndef MR_SYNC_TRANSACT_H
#define MR_SYNC_TRANSACT_H

#include "../state/pools.h"
#include "accesses.h"
#include "conflicts.h"
#include "stamps.h"
#include "undo.h"

/* Attempts before a packet takes the words of the last one first, and before it runs alone. */
#ifndef TRANSACT_HOLD
#define TRANSACT_HOLD 4u
#endif
#ifndef TRANSACT_ALONE
#define TRANSACT_ALONE 64u
#endif

/* What fits one packet; who needs more runs alone. */
#define TRANSACT_READS 48u
#define TRANSACT_WRITES 24u
#define TRANSACT_EFFECTS 48u
#define TRANSACT_PENDING 12u
#define TRANSACT_COPY_BYTES 1024u

/* What an attempt ends with. */
enum {
    TRANSACT_DONE,
    TRANSACT_AGAIN, /* nothing that it did so far may show */
};

/* Why a packet ran alone; behind these, the steps that do so, as the emitter numbers them. */
enum transact_why {
    TRANSACT_WHY_ROOM,     /* it had no room in its sets */
    TRANSACT_WHY_POOL,     /* no entry in the core's pool */
    TRANSACT_WHY_BUCKET,   /* no vacant way in the bucket */
    TRANSACT_WHY_ATTEMPTS, /* TRANSACT_ALONE attempts */
    TRANSACT_WHYS,
};

enum transact_kind {
    TRANSACT_NOTHING,
    TRANSACT_WAY,     /* store 32 bits */
    TRANSACT_WORD,    /* store 64 bits */
    TRANSACT_COUNT,   /* add 1 to the core's own counter */
    TRANSACT_LIVE,    /* an entry of the own pool is filed; if the packet aborts, it is given back */
    TRANSACT_UNTAKE,  /* an entry of the own pool is given back in any case */
    TRANSACT_FREE,    /* an entry is given back */
};

struct transact_effect {
    u64 kind;
    void *to;
    u64 value, more;
};

struct transact_word {
    u64 *word;
    u64 seen;
    u64 flags; /* that it has afterwards, of words to write */
    TRANSACT_PROFILED(u64 step;)
};

struct transact_seen {
    u64 *word;
    u64 seen;
    TRANSACT_LOGGED(u64 timed;)
    TRANSACT_PROFILED(u64 step;)
};

enum transact_change {
    TRANSACT_INSERTED,
    TRANSACT_REMOVED,
    TRANSACT_COPIED,
    TRANSACT_STORED, /* copied, and it differs in the end */
    TRANSACT_CANCELLED,
};

/* What later operations of the same packet have to know of an earlier one. */
struct transact_pending {
    enum transact_change change;
    u32 index, effect; /* the entry; where the effects begin */
    const void *object;
    u8 *place, *copy; /* of a value */
    u32 bytes;
    u64 *time;        /* of the entry; NULL: it has none */
    u32 *way;         /* the way that is written */
    u64 *word;
    u64 seen;
    TRANSACT_PROFILED(u64 step;)
};

struct transact;
typedef void transact_decide_fn(struct transact *t, void *object, const struct shape *s, u32 index);

/* One a core. */
struct transact {
    struct undo undo; /* of what is the core's own: the packet's bytes, its own objects */
    struct lock *lock;
    u32 core;
    u32 step;     /* of the program, for who meets a word later */
    u64 time;     /* ns: the packet's */
    u64 *whys;    /* of each reason to run alone: how many packets did */
    u32 alone;    /* this packet holds all lines */
    u32 crowded;  /* it must run alone */
    u32 attempts;
    u32 helds;
    /* of the attempt; side by side, so that few stores begin one */
    union {
        struct {
            u16 writes, effects, pendings, unwritten;
        };
        u64 changes; /* only stored: a load of all behind a store of one would wait for it */
    };
    union {
        struct {
            u16 reads, refreshes;
            u8 again, done; /* it met another core; it has committed */
            u16 why;        /* the reason to run alone, if it has to */
        };
        u64 course;
    };
    u64 copied; /* bytes of `copy` */
    u64 late;   /* ns: an entry that it read has this later time */
#ifdef TRANSACT_ORDER
    u64 order; /* of the packet that committed */
#endif
    TRANSACT_LOGGED(struct accesses *log;)
    TRANSACT_PROFILED(struct conflicts *conflicts; u32 (*what)(const void *word, const struct transact *t); const u64 *met;)
    /* an entry to decide about before the next attempt; none: NULL */
    transact_decide_fn *decide;
    void *decide_object;
    const struct shape *decide_shape;
    u32 decide_index;
    struct mr_transact_counts count;
    u64 counted; /* of `count.alone`, when `count.commits` was counted last */
    struct transact_seen read[TRANSACT_READS] __attribute__((aligned(64)));
    struct transact_word write[TRANSACT_WRITES];
    struct transact_word held[TRANSACT_READS + TRANSACT_WRITES];
    struct transact_effect effect[TRANSACT_EFFECTS];
    u64 *refresh[TRANSACT_READS]; /* the core's own stamps, which move on to the packet's time */
    struct transact_pending pending[TRANSACT_PENDING] __attribute__((aligned(64)));
    u64 copy[TRANSACT_COPY_BYTES / 8] __attribute__((aligned(64)));
};

MR_INLINE void transact_create(struct transact *t, struct lock *lock, u32 core)
{
    memset(t, 0, sizeof *t);
    t->lock = lock;
    t->core = core;
}

/* What a word is after a write of a word that was `seen`. */
MR_INLINE u64 transact_next(const struct transact *t, u64 seen, u64 flags)
{
    return ((seen >> 25) + 1) << 25 | (u64)(t->step & 0xfff) << 13 | (u64)(t->core & 0x3ff) << 3 | flags;
}

/* The next version of a word that this core has taken, or that nobody else can be at. */
MR_INLINE void transact_move_on(const struct transact *t, u64 *word, u64 flags)
{
    u64 next = transact_next(t, __atomic_load_n(word, __ATOMIC_RELAXED), flags);

    TRANSACT_LOGGED(accesses_note(t->log, MR_ACCESS_WRITE, word, next >> 25, 0);)
    transact_store(word, next);
}

/* ---- the sets of a packet ---- */

MR_INLINE void transact_begin_sets(struct transact *t) { t->changes = t->course = t->copied = t->late = 0; }

MR_INLINE void transact_begin(struct transact *t)
{
    transact_begin_sets(t);
    undo_begin(&t->undo);
}

MR_INLINE const struct transact_word *transact_held(const struct transact *t, const u64 *word)
{
    for (u32 i = 0; i < t->helds; i++)
        if (t->held[i].word == word)
            return &t->held[i];
    return NULL;
}

/* Loads a word; 0: another core has taken it. */
MR_INLINE int transact_look(const struct transact *t, const u64 *word, u64 *seen)
{
    *seen = transact_load(word);
    if (mr_unlikely(*seen & TRANSACT_TAKEN)) {
        const struct transact_word *held = transact_held(t, word);

        if (!held)
            return 0;
        *seen = held->seen;
    }
    return 1;
}

/* These give 1 if there is no room, where the packet must run alone. */

MR_INLINE int transact_crowd(struct transact *t, enum transact_why why)
{
    t->crowded = 1;
    t->why = (u16)why;
    return 1;
}

MR_INLINE int transact_read(struct transact *t, u64 *word, u64 seen)
{
    if (mr_unlikely(t->reads == TRANSACT_READS))
        return transact_crowd(t, TRANSACT_WHY_ROOM);
    TRANSACT_PROFILED(t->read[t->reads].step = t->step;)
    TRANSACT_LOGGED(t->read[t->reads].timed = 0;)
    t->read[t->reads].word = word;
    t->read[t->reads++].seen = seen;
    return 0;
}

/* Words to write are kept in the order of their addresses, each once. */
MR_INLINE int transact_write(struct transact *t, u64 *word, u64 seen, u64 flags)
{
    u32 at = t->writes;

    while (at > 0 && t->write[at - 1].word > word)
        at--;
    if (at > 0 && t->write[at - 1].word == word) {
        t->write[at - 1].flags |= flags;
        /* Seen twice as two versions: the check of reads refuses the later one. */
        return t->write[at - 1].seen != seen && transact_read(t, word, seen);
    }
    if (mr_unlikely(t->writes == TRANSACT_WRITES))
        return transact_crowd(t, TRANSACT_WHY_ROOM);
    for (u32 i = t->writes; i > at; i--)
        t->write[i] = t->write[i - 1];
    t->write[at] = (struct transact_word){ .word = word, .seen = seen, .flags = flags };
    TRANSACT_PROFILED(t->write[at].step = t->step;)
    t->writes++;
    return 0;
}

MR_INLINE int transact_effect(struct transact *t, struct transact_effect effect)
{
    if (mr_unlikely(t->effects == TRANSACT_EFFECTS))
        return transact_crowd(t, TRANSACT_WHY_ROOM);
    t->effect[t->effects++] = effect;
    return 0;
}

/* Moves a stamp of the core's own on to the packet's time. */
MR_INLINE int transact_refresh(struct transact *t, u64 *stamp)
{
    if (mr_unlikely(t->refreshes == TRANSACT_READS))
        return transact_crowd(t, TRANSACT_WHY_ROOM);
    t->refresh[t->refreshes++] = stamp;
    return 0;
}

/* Room for another one, whose members the caller sets. */
MR_INLINE struct transact_pending *transact_pend(struct transact *t, enum transact_change change, const void *object,
                                                 u32 index)
{
    struct transact_pending *p = &t->pending[t->pendings];

    if (mr_unlikely(t->pendings == TRANSACT_PENDING)) {
        transact_crowd(t, TRANSACT_WHY_ROOM);
        return NULL;
    }
    t->pendings++;
    p->change = change;
    p->object = object;
    p->index = index;
    p->way = NULL;
    TRANSACT_PROFILED(p->step = t->step;)
    return p;
}

/* Room for a private copy of a value, or NULL. */
MR_INLINE u8 *transact_copy(struct transact *t, u32 bytes)
{
    u8 *copy = (u8 *)t->copy + t->copied;

    if (mr_unlikely(bytes > TRANSACT_COPY_BYTES - t->copied)) {
        transact_crowd(t, TRANSACT_WHY_ROOM);
        return NULL;
    }
    t->copied += mr_round_up(bytes, 8);
    return copy;
}

/* ---- the end of a packet ---- */

MR_INLINE void transact_touch(const struct transact *t)
{
    for (u32 i = 0; i < t->refreshes; i++) {
        MR_POINT();
        if (t->time > __atomic_load_n(t->refresh[i], __ATOMIC_RELAXED))
            __atomic_store_n(t->refresh[i], t->time, __ATOMIC_RELAXED);
    }
}

MR_INLINE void transact_apply(struct transact *t)
{
    transact_touch(t);
    for (u32 i = 0; i < t->pendings; i++) {
        const struct transact_pending *p = &t->pending[i];

        if (p->change != TRANSACT_STORED)
            continue;
        transact_put_bytes(p->place, p->copy, p->bytes);
        if (p->time)
            __atomic_store_n(p->time, t->time, __ATOMIC_RELAXED);
    }
    for (u32 i = 0; i < t->effects; i++) {
        const struct transact_effect *e = &t->effect[i];

        switch (e->kind) {
        case TRANSACT_WAY:
            /* Behind the entry's word, for who comes to the entry by this way. */
            MR_POINT();
            __atomic_store_n((u32 *)e->to, (u32)e->value, __ATOMIC_RELEASE);
            break;
        case TRANSACT_WORD:
            transact_store((u64 *)e->to, e->value);
            break;
        case TRANSACT_COUNT:
            ++*(u64 *)e->to;
            break;
        case TRANSACT_LIVE:
            pools_live((struct pools *)e->to, t->core, (u32)e->value, e->more);
            break;
        case TRANSACT_UNTAKE:
            pools_untake((struct pools *)e->to, t->core, (u32)e->value);
            break;
        default:
            break;
        }
    }
}

/* Entries are given back when their words say that they are dead. */
MR_INLINE void transact_give_back(struct transact *t)
{
    for (u32 i = 0; i < t->effects; i++)
        if (t->effect[i].kind == TRANSACT_FREE)
            pools_free((struct pools *)t->effect[i].to, t->core, (u32)t->effect[i].value);
}

/* Gives back words that the packet holds but did not write. */
MR_INLINE void transact_unhold(struct transact *t)
{
    for (u32 i = 0; i < t->helds; i++)
        transact_store(t->held[i].word, t->held[i].seen);
    t->helds = 0;
}

MR_INLINE int transact_take(struct transact *t, const struct transact_word *w)
{
    if (mr_unlikely(t->helds) && transact_held(t, w->word))
        return transact_held(t, w->word)->seen == w->seen;
    if (TRANSACT_FAULT(TRANSACT_FAULT_UPDATE)) {
        u64 now = transact_load(w->word);

        return !(now & TRANSACT_TAKEN) && transact_cas(w->word, now, now | TRANSACT_TAKEN);
    }
    return transact_cas(w->word, w->seen, w->seen | TRANSACT_TAKEN);
}

MR_INLINE int transact_still(const struct transact *t, const struct transact_seen *r)
{
    u64 now;

    MR_POINT();
    now = __atomic_load_n(r->word, __ATOMIC_SEQ_CST);
    if (mr_likely(now == r->seen))
        return 1;
    /* Taken by this packet itself: to write, or held. */
    if (!TRANSACT_FAULT(TRANSACT_FAULT_UPDATE) && now != (r->seen | TRANSACT_TAKEN))
        return 0;
    for (u32 i = 0; i < t->writes; i++)
        if (t->write[i].word == r->word)
            return 1;
    return transact_held(t, r->word) != NULL;
}

#ifdef TRANSACT_LOG
/* What a packet that commits read and wrote. */
MR_INLINE void transact_log(const struct transact *t)
{
    for (u32 i = 0; i < t->reads; i++)
        accesses_note(t->log, MR_ACCESS_READ, t->read[i].word, t->read[i].seen >> 25, (u32)t->read[i].timed);
    for (u32 i = 0; i < t->writes; i++)
        accesses_note(t->log, MR_ACCESS_WRITE, t->write[i].word, (t->write[i].seen >> 25) + 1, 0);
    for (u32 i = 0; i < t->effects; i++)
        if (t->effect[i].kind == TRANSACT_WORD)
            accesses_note(t->log, MR_ACCESS_WRITE, (u64 *)t->effect[i].to, t->effect[i].value >> 25, 0);
}
#endif

/* For tests: a place in an order. Who reads what this packet writes has a later one, as that is read after the
 * release; and so has who writes what it reads, as that word is taken after it is looked at below. */
MR_INLINE void transact_place(struct transact *t)
{
    (void)t;
#ifdef TRANSACT_ORDER
    MR_POINT();
    t->order = __atomic_add_fetch(&t->lock->commits, 1, __ATOMIC_SEQ_CST);
#endif
}

/* The words that were read are what they were, but for `own`, which this packet has taken from the value `own_seen`. */
MR_INLINE int transact_reads_hold(const struct transact *t, const u64 *own, u64 own_seen)
{
    u64 changed = 0;

    TRANSACT_FENCE(__ATOMIC_ACQUIRE);
    if (mr_likely(t->reads == 1)) {
        const struct transact_seen *r = &t->read[0];

        MR_POINT();
        return (r->word == own ? own_seen : __atomic_load_n(r->word, __ATOMIC_SEQ_CST)) == r->seen;
    }
    for (u32 i = 0; i < t->reads; i++) {
        const struct transact_seen *r = &t->read[i];

        MR_POINT();
        changed |= (r->word == own ? own_seen : __atomic_load_n(r->word, __ATOMIC_SEQ_CST)) ^ r->seen;
    }
    return changed == 0;
}

/* The commit of a packet that only read. */
MR_INLINE int transact_commit_read(struct transact *t)
{
    transact_place(t);
    if (mr_unlikely(!transact_reads_hold(t, NULL, 0))) {
        t->again = 1;
        return 0;
    }
    TRANSACT_LOGGED(transact_log(t);)
    transact_touch(t);
    return 1;
}

/* The commit of a packet that changes one value and nothing else. */
MR_INLINE int transact_commit_one(struct transact *t)
{
    struct transact_pending *p = &t->pending[0];

    if (transact_same_bytes(p->place, p->copy, p->bytes))
        return transact_commit_read(t);
    if (mr_unlikely(!transact_cas(p->word, p->seen, p->seen | TRANSACT_TAKEN))) {
        t->again = 1;
        return 0;
    }
    transact_place(t);
    if (mr_unlikely(!transact_reads_hold(t, p->word, p->seen))) {
        transact_store(p->word, p->seen);
        t->again = 1;
        return 0;
    }
    TRANSACT_LOGGED(transact_log(t); accesses_note(t->log, MR_ACCESS_WRITE, p->word, (p->seen >> 25) + 1, 0);)
    TRANSACT_HELD();
    TRANSACT_FENCE(__ATOMIC_RELEASE);
    transact_touch(t);
    transact_put_bytes(p->place, p->copy, p->bytes);
    if (p->time)
        __atomic_store_n(p->time, t->time, __ATOMIC_RELAXED);
    TRANSACT_PROFILED(t->step = (u32)p->step;)
    transact_store(p->word, transact_next(t, p->seen, 0));
    return 1;
}

/* That of any other packet. */
MR_OUTLINE int transact_commit_any(struct transact *t)
{
    u32 taken = 0;

    for (u32 i = 0; i < t->pendings; i++) {
        struct transact_pending *p = &t->pending[i];

        if (p->change != TRANSACT_COPIED || transact_same_bytes(p->place, p->copy, p->bytes))
            continue;
        TRANSACT_PROFILED(t->step = (u32)p->step;)
        if (transact_write(t, p->word, p->seen, 0))
            return 0;
        p->change = TRANSACT_STORED;
    }
    while (taken < t->writes && transact_take(t, &t->write[taken]))
        taken++;
    if (taken == t->writes) {
        u32 i = 0;

        transact_place(t);
        TRANSACT_FENCE(__ATOMIC_ACQUIRE);
        while (i < t->reads && transact_still(t, &t->read[i]))
            i++;
        if (i == t->reads) {
            TRANSACT_LOGGED(transact_log(t);)
            if (t->writes)
                TRANSACT_HELD();
            TRANSACT_FENCE(__ATOMIC_RELEASE);
            transact_apply(t);
            for (i = 0; i < t->writes; i++) {
                TRANSACT_PROFILED(t->step = (u32)t->write[i].step;)
                transact_store(t->write[i].word, transact_next(t, t->write[i].seen, t->write[i].flags));
            }
            for (i = 0; i < t->helds; i++) {
                u32 w = 0;

                while (w < t->writes && t->write[w].word != t->held[i].word)
                    w++;
                if (w == t->writes)
                    transact_store(t->held[i].word, t->held[i].seen);
            }
            t->helds = 0;
            transact_give_back(t);
            return 1;
        }
    }
    while (taken-- > 0)
        if (!transact_held(t, t->write[taken].word))
            transact_store(t->write[taken].word, t->write[taken].seen);
    t->again = 1;
    return 0;
}

/* Whether the packet committed; what it did is visible then. Once it has, it stays so. */
MR_INLINE int transact_commit(struct transact *t)
{
    int done;

    if (t->done || mr_unlikely(t->alone))
        return 1;
    if (mr_unlikely(t->helds || TRANSACT_FAULT(TRANSACT_FAULT_UPDATE)))
        done = transact_commit_any(t);
    else if (t->writes | t->effects)
        done = transact_commit_any(t);
    else if (t->pendings == 0)
        done = transact_commit_read(t);
    else if (t->pendings == 1 && t->pending[0].change == TRANSACT_COPIED)
        done = transact_commit_one(t);
    else
        done = transact_commit_any(t);
    t->done = (u8)done;
    return done;
}

/* ---- another attempt ---- */

/* Nothing of the attempt is left. */
MR_INLINE void transact_abort(struct transact *t)
{
    for (u32 i = t->effects; i-- > 0;)
        if (t->effect[i].kind == TRANSACT_LIVE || t->effect[i].kind == TRANSACT_UNTAKE)
            pools_untake((struct pools *)t->effect[i].to, t->core, (u32)t->effect[i].value);
    undo_all(&t->undo);
    transact_unhold(t);
    t->count.aborts++;
}

/* Every packet that another core had begun when this was called is over. The line of this core is given up meanwhile. */
MR_OUTLINE void transact_grace(struct transact *t)
{
    t->count.graces++;
    lock_read_end(t->lock, t->core);
    for (u32 i = 0; i < t->lock->cores; i++)
        if (i != t->core) {
            lock_turn(&t->lock->line[i], lock_ticket(&t->lock->line[i]));
            lock_pass(&t->lock->line[i]);
        }
    lock_read(t->lock, t->core);
}

/* Takes the words of the last attempt in the order of addresses; none of them where one is marked. */
MR_OUTLINE void transact_hold(struct transact *t)
{
    struct transact_word *word = t->held;
    u32 count = 0;

    for (u32 i = 0; i < t->reads + t->writes; i++) {
        u64 *next = i < t->reads ? t->read[i].word : t->write[i - t->reads].word;
        u32 at = count;

        while (at > 0 && word[at - 1].word > next)
            at--;
        if (at > 0 && word[at - 1].word == next)
            continue;
        memmove(&word[at + 1], &word[at], (count - at) * sizeof *word);
        word[at].word = next;
        count++;
    }
    t->count.holds++;
    while (t->helds < count) {
        u32 spins = 0;

        for (;;) {
            u64 now = transact_load(word[t->helds].word);

            if (now & TRANSACT_DYING) {
                transact_unhold(t);
                return;
            }
            /* It may be a free entry's, whose core does not expect anybody there; and an object's says that it is full. */
            if (now & TRANSACT_DEAD) {
                memmove(&word[t->helds], &word[t->helds + 1], (--count - t->helds) * sizeof *word);
                break;
            }
            word[t->helds].seen = now;
            if (!(now & TRANSACT_TAKEN) && transact_cas(word[t->helds].word, now, now | TRANSACT_TAKEN)) {
                t->helds++;
                break;
            }
            transact_relax(&spins);
        }
    }
}

#ifdef MR_PROFILE
/* What an attempt met that did not commit: the first word that is no longer what it was. */
MR_OUTLINE void transact_conflict(struct transact *t)
{
    const u64 *word = t->met;
    u64 step = t->step;

    t->met = NULL;
    if (!t->again)
        return;
    for (u32 i = 0; !word && i < t->writes; i++)
        if ((transact_load(t->write[i].word) ^ t->write[i].seen) & ~TRANSACT_TAKEN) {
            word = t->write[i].word;
            step = t->write[i].step;
        }
    for (u32 i = 0; !word && i < t->pendings; i++)
        if (t->pending[i].change == TRANSACT_COPIED && transact_load(t->pending[i].word) != t->pending[i].seen) {
            word = t->pending[i].word;
            step = t->pending[i].step;
        }
    for (u32 i = 0; !word && i < t->reads; i++)
        if (transact_load(t->read[i].word) != t->read[i].seen) {
            word = t->read[i].word;
            step = t->read[i].step;
        }
    if (word)
        conflicts_note(t->conflicts, (u32)step, (u32)(transact_load(word) >> 13 & 0xfff), t->what(word, t), word, 0);
    else
        conflicts_note(t->conflicts, (u32)step, UINT32_MAX, MR_CONFLICT_OTHER, NULL, 0);
}
#endif

#ifdef MR_PROFILE
/* A packet that runs alone for a reason of the protocol itself: at its step. Steps that run alone always say so themselves. */
MR_OUTLINE void transact_conflict_alone(struct transact *t)
{
    static const u32 what[] = {
        [TRANSACT_WHY_ROOM] = MR_CONFLICT_ROOM, [TRANSACT_WHY_POOL] = MR_CONFLICT_POOL, [TRANSACT_WHY_BUCKET] = MR_CONFLICT_WAYS,
    };

    if (t->crowded && t->why < sizeof what / sizeof *what)
        conflicts_note(t->conflicts, (u32)t->step, UINT32_MAX, what[t->why], NULL, 0);
}
#endif

/* After an attempt that did not commit: what has to be done before the next one. */
MR_OUTLINE void transact_again(struct transact *t)
{
    transact_decide_fn *decide = t->decide;

    TRANSACT_PROFILED(transact_conflict(t);)
    transact_abort(t);
    t->attempts++;
    t->decide = NULL;
    /* Who met nobody came to something that runs alone. */
    t->crowded |= !t->again && !decide;
    if (t->late > t->time)
        t->time = t->late;
    if (t->crowded || t->attempts >= TRANSACT_ALONE) {
        TRANSACT_PROFILED(transact_conflict_alone(t);)
        if (t->whys)
            t->whys[t->crowded ? t->why : TRANSACT_WHY_ATTEMPTS]++;
        if (TRANSACT_FAULT(TRANSACT_FAULT_ALONE))
            MR_POINT();
        else
            lock_read_to_write(t->lock, t->core);
        t->alone = 1;
        t->count.alone++;
        return;
    }
    if (decide)
        decide(t, t->decide_object, t->decide_shape, t->decide_index);
    lock_read_again(t->lock, t->core);
    if (t->attempts >= TRANSACT_HOLD)
        transact_hold(t);
}

/* Behind n packets: those that did not run alone have committed. Counted a burst, as a packet has no nanosecond for it. */
MR_INLINE void transact_counted(struct transact *t, u32 n)
{
    t->count.commits += n - (t->count.alone - t->counted);
    t->counted = t->count.alone;
}

/* After the attempt that committed. */
MR_INLINE void transact_end(struct transact *t)
{
    if (mr_unlikely(t->alone) && !TRANSACT_FAULT(TRANSACT_FAULT_ALONE))
        lock_write_to_read(t->lock, t->core);
    t->alone = t->crowded = t->attempts = 0;
}

#include "transact_few.h"

#endif
