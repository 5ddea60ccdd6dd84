/* A hash looked at from inside, after any operation. */
#ifndef MR_HASH_STRUCTURE_H
#define MR_HASH_STRUCTURE_H

#include "../state/hash.h"
#include "check.h"

/* The table's own invariants: chains compact, every spare bucket accounted for, bounds no later than
 * the times they bound. */
static void check_structure(struct hash *h, const struct shape *s)
{
    struct table *t = &h->table;
    u64 entries = 0, overflow = 0, spare = 0;

    for (u32 i = 0; i <= t->mask; i++) {
        u32 at = i;

        do {
            struct table_bucket *b = &t->bucket[at];
            int vacant = 0;

            for (u32 w = 0; w < TABLE_WAYS; w++) {
                CHECK(!(vacant && b->way[w]));
                vacant |= !b->way[w];
                entries += b->way[w] != 0;
            }
            CHECK(!(b->next && vacant));
            CHECK(at == i || b->way[0]);
            overflow += at != i;
            at = b->next;
        } while (at);
    }
    for (u32 at = t->spare; at; at = t->bucket[at].next)
        spare++;
    CHECK(entries == t->used);
    CHECK(overflow + spare == s->capacity / TABLE_WAYS + 1);
    if (!s->expire_after)
        return;
    CHECK(h->expiry.count == t->used);
    for (u32 i = 0; i < h->expiry.count; i++) {
        struct expiry_item *item = &h->expiry.item[i];
        u8 *entry = table_entry(t, s, 8, item->index);

        CHECK(t->link[item->index] == i);
        CHECK(item->due <= expiry_due(*hash_stamp(entry), s->expire_after));
        CHECK(i == 0 || !expiry_before(item, &h->expiry.item[(i - 1) / 4]));
    }
}

#endif
