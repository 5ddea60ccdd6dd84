/* transact_few: the words that a packet reads, in locals of its program and not in the sets of struct transact, as long as each of
 * a few steps of the program finds one entry. Included by transact.h; the lookups are in state/transact_map_packet.h.
 *
 * The program has a `struct transact_few` and each of these steps a place in it; no step runs twice for one packet. So the
 * compiler keeps the places in registers, and leaves out those that a path does not come to: a packet that reads one entry loads
 * its word, looks at its flags, and at its end compares the word with what it was. All else has the sets: a key that is absent, an
 * entry that is taken, dying or too old, an insertion, a second value that is stored to, another attempt. Then
 * `transact_few_sets` begins them and puts there what the places say, and the packet goes on with them.
 *
 * The protocol is that of transact.h. A packet commits by the same steps in the same order: take the word that it writes, load
 * those that it read, store, release. Only place 0 may be of a value that the packet stores to.
 */
#ifndef MR_SYNC_TRANSACT_FEW_H
#define MR_SYNC_TRANSACT_FEW_H

/* Places; the emitter gives out no more. */
#define TRANSACT_FEW 4u

struct transact_few_read {
    u64 *word; /* NULL: the step has found nothing yet */
    u64 seen;
    u64 *stamp; /* the core's own, which moves on to the packet's time; NULL: not refreshed */
    /* of a value that the packet may store to; else `copy` is NULL */
    u8 *place, *copy;
    u64 *time; /* of the entry; NULL: it has none */
    const void *object;
    u32 index, bytes;
    u32 timed, step; /* for tests and for profiles */
};

enum transact_few_state {
    TRANSACT_FEW_PLACES, /* all that the packet read is in its places */
    TRANSACT_FEW_SETS,   /* it is in the sets */
    TRANSACT_FEW_DONE,   /* the packet has committed from its places */
};

struct transact_few {
    u32 state;
    u32 stored; /* a step has stored to the copy */
    struct transact_few_read read[TRANSACT_FEW];
};

/* For each place, by a constant number: a loop would keep the places in memory. */
#define TRANSACT_FEW_EACH(what) what(0) what(1) what(2) what(3)
_Static_assert(TRANSACT_FEW == 4, "as many as TRANSACT_FEW_EACH");

/* Further attempts have the sets from the beginning, as their words may be held. */
MR_INLINE u32 transact_few_begin(const struct transact *t)
{
    return mr_unlikely(t->attempts) ? TRANSACT_FEW_SETS : TRANSACT_FEW_PLACES;
}

MR_OUTLINE void transact_few_open(struct transact *t, const struct mr_packet *pkt)
{
    t->time = pkt->time;
    transact_begin_sets(t);
}

/* A word of a place goes into the sets, which have room for all. Not the place: what nothing points to stays in registers. */
MR_OUTLINE void transact_few_put(struct transact *t, u64 *word, u64 seen, u64 *stamp, u32 timed, u32 step)
{
    (void)timed, (void)step;
    transact_read(t, word, seen);
    TRANSACT_PROFILED(t->read[t->reads - 1].step = step;)
    TRANSACT_LOGGED(t->read[t->reads - 1].timed = timed;)
    if (stamp)
        transact_refresh(t, stamp);
}

/* From now on the packet has the sets; what it kept to be undone stays. */
MR_INLINE void transact_few_sets(struct transact *t, const struct mr_packet *pkt, struct transact_few *few)
{
    struct transact_few_read *w = &few->read[0];
    struct transact_pending *p;

    if (few->state == TRANSACT_FEW_SETS)
        return;
    few->state = TRANSACT_FEW_SETS;
    transact_few_open(t, pkt);
#define TRANSACT_FEW_PUT(i)                                                                                             \
    if (few->read[i].word)                                                                                              \
        transact_few_put(t, few->read[i].word, few->read[i].seen, few->read[i].stamp, few->read[i].timed, few->read[i].step);
    TRANSACT_FEW_EACH(TRANSACT_FEW_PUT)
    if (!w->word || !w->copy)
        return;
    p = transact_pend(t, TRANSACT_COPIED, w->object, w->index);
    if (!p)
        return;
    TRANSACT_PROFILED(p->step = w->step;)
    p->place = w->place;
    p->copy = w->copy;
    p->bytes = w->bytes;
    p->time = w->time;
    p->word = w->word;
    p->seen = w->seen;
}

/* Where an attempt ends before the program does. */
MR_INLINE int transact_few_leave(struct transact *t, const struct mr_packet *pkt, struct transact_few *few)
{
    transact_few_sets(t, pkt, few);
    return TRANSACT_AGAIN;
}

/* Whether the word of a place is no longer what was seen; `own` is taken by this packet from the value `own_seen`. */
MR_INLINE int transact_few_changed(const struct transact_few_read *f, const u64 *own, u64 own_seen)
{
    if (!f->word || TRANSACT_FAULT(TRANSACT_FAULT_READS) || TRANSACT_FAULT(TRANSACT_FAULT_FEW))
        return 0;
    MR_POINT();
    return (f->word == own ? own_seen : __atomic_load_n(f->word, __ATOMIC_SEQ_CST)) != f->seen;
}

MR_INLINE void transact_few_touch(const struct transact_few_read *f, u64 now)
{
    if (!f->word || !f->stamp)
        return;
    MR_POINT();
    if (now > __atomic_load_n(f->stamp, __ATOMIC_RELAXED))
        __atomic_store_n(f->stamp, now, __ATOMIC_RELAXED);
}

#define TRANSACT_FEW_CHANGED(i) changed |= transact_few_changed(&few->read[i], own, own_seen);
#define TRANSACT_FEW_TOUCH(i) transact_few_touch(&few->read[i], pkt->time);
#define TRANSACT_FEW_LOG(i)                                                                                             \
    TRANSACT_LOGGED(if (few->read[i].word) accesses_note(t->log, MR_ACCESS_READ, few->read[i].word,                     \
                                                         few->read[i].seen >> 25, few->read[i].timed);)

/* The words that were read are what they were, but for `own`, which this packet has taken from the value `own_seen`. */
MR_INLINE int transact_few_hold(struct transact *t, const struct transact_few *few, const u64 *own, u64 own_seen)
{
    int changed = 0;

    transact_place(t);
    TRANSACT_FENCE(__ATOMIC_ACQUIRE);
    TRANSACT_FEW_EACH(TRANSACT_FEW_CHANGED)
    return !changed;
}

/* The commit of a packet that stored to the value of place 0. */
MR_INLINE int transact_few_commit_one(struct transact *t, const struct mr_packet *pkt, struct transact_few *few)
{
    struct transact_few_read *w = &few->read[0];

    if (mr_unlikely(!transact_cas(w->word, w->seen, w->seen | TRANSACT_TAKEN)))
        return 0;
    if (mr_unlikely(!transact_few_hold(t, few, w->word, w->seen))) {
        transact_store(w->word, w->seen);
        return 0;
    }
    TRANSACT_FEW_EACH(TRANSACT_FEW_LOG)
    TRANSACT_LOGGED(accesses_note(t->log, MR_ACCESS_WRITE, w->word, (w->seen >> 25) + 1, 0);)
    TRANSACT_HELD();
    TRANSACT_FENCE(__ATOMIC_RELEASE);
    TRANSACT_FEW_EACH(TRANSACT_FEW_TOUCH)
    transact_put_bytes(w->place, w->copy, w->bytes);
    if (w->time)
        __atomic_store_n(w->time, pkt->time, __ATOMIC_RELAXED);
    TRANSACT_PROFILED(t->step = w->step;)
    transact_store(w->word, transact_next(t, w->seen, 0));
    return 1;
}

/* The commit of a packet that only read. */
MR_INLINE int transact_few_commit_read(struct transact *t, const struct mr_packet *pkt, struct transact_few *few)
{
    if (mr_unlikely(!transact_few_hold(t, few, NULL, 0)))
        return 0;
    TRANSACT_FEW_EACH(TRANSACT_FEW_LOG)
    TRANSACT_FEW_EACH(TRANSACT_FEW_TOUCH)
    return 1;
}

MR_OUTLINE int transact_few_commit_sets(struct transact *t) { return transact_commit(t); }

/* As transact_commit. */
MR_INLINE int transact_few_commit(struct transact *t, const struct mr_packet *pkt, struct transact_few *few)
{
    struct transact_few_read *w = &few->read[0];
    int done;

    if (few->state == TRANSACT_FEW_DONE)
        return 1;
    if (few->state == TRANSACT_FEW_PLACES) {
        if (w->word && w->copy && few->stored && !transact_same_bytes(w->place, w->copy, w->bytes))
            done = !TRANSACT_FAULT(TRANSACT_FAULT_UPDATE) && transact_few_commit_one(t, pkt, few);
        else
            done = transact_few_commit_read(t, pkt, few);
        if (mr_likely(done)) {
            few->state = TRANSACT_FEW_DONE;
            return 1;
        }
        transact_few_sets(t, pkt, few);
        if (!TRANSACT_FAULT(TRANSACT_FAULT_UPDATE)) {
            t->again = 1;
            return 0;
        }
    }
    return transact_few_commit_sets(t);
}

/* The end of the program. */
MR_INLINE int transact_few_end(struct transact *t, const struct mr_packet *pkt, struct transact_few *few)
{
    return mr_likely(transact_few_commit(t, pkt, few)) ? TRANSACT_DONE : TRANSACT_AGAIN;
}

#endif
