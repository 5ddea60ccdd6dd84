/* conflicts: for profiles, which step met which other core's step, and at what: counted where an attempt did not commit, or a
 * reader had to become a writer. Modules that are not made for profiles have nothing of it.
 *
 * A fixed table a core, by the two steps and the kind of what they met at; whatever finds no place in it is counted as lost. Of
 * each place a majority vote (Boyer and Moore, MJRTY, 1981) keeps the word that was met most. */
#ifndef MR_SYNC_CONFLICTS_H
#define MR_SYNC_CONFLICTS_H

#ifdef MR_PROFILE

#include "../base.h"

#define CONFLICTS 256u

struct conflict {
    u32 mine, theirs, what, unused;
    u64 count, ticks;
    const void *word;
    u64 votes;
};

struct conflicts {
    struct conflict at[CONFLICTS];
    u64 lost;
};

MR_INLINE u64 conflicts_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

MR_OUTLINE void conflicts_note(struct conflicts *c, u32 mine, u32 theirs, u32 what, const void *word, u64 ticks)
{
    u32 first = (mine * 31 + theirs * 7 + what) % CONFLICTS;

    for (u32 i = 0; i < CONFLICTS; i++) {
        struct conflict *at = &c->at[(first + i) % CONFLICTS];

        if (at->count && (at->mine != mine || at->theirs != theirs || at->what != what))
            continue;
        at->mine = mine;
        at->theirs = theirs;
        at->what = what;
        at->count++;
        at->ticks += ticks;
        if (at->votes == 0)
            at->word = word;
        at->votes += at->word == word ? 1 : -1ull;
        return;
    }
    c->lost++;
}

/* Hands them over. `key`: the key of the entry that a word belongs to, or NULL. */
MR_INLINE void conflicts_hand(const struct conflicts *c, const u8 *(*key)(const void *word, const void *of, u32 *bytes),
                              const void *of, mr_conflict_fn *fn, void *context)
{
    for (u32 i = 0; i < CONFLICTS; i++) {
        const struct conflict *at = &c->at[i];
        struct mr_conflict told = { at->mine, at->theirs, at->what, 0, at->count, at->ticks, at->votes, NULL };

        if (at->count == 0)
            continue;
        told.key = at->word ? key(at->word, of, &told.key_bytes) : NULL;
        fn(context, &told);
    }
}

#endif

#endif
