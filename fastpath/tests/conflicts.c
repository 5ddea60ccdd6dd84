/* conflicts: what a profile counts where an attempt does not commit: the step, the step that it met, at what, and the key. Two
 * cores in one thread, each conflict planted. */
#define MR_PROFILE 1
#include "../state/transact_map.h"
#include "check.h"

static struct lock lock;
static struct transact_map map;
static struct shape shape = { .key_bytes = 8, .value_bytes = 8, .capacity = 64, .shared = 1 };
static struct transact core[2];
static struct conflicts conflicts[2];

static u32 what(const void *word, const struct transact *t)
{
    (void)t;
    return transact_map_what(&map, &shape, word);
}

static const u8 *key_of(const void *word, const void *of, u32 *bytes)
{
    (void)of;
    if (transact_map_what(&map, &shape, word) != MR_CONFLICT_ENTRY)
        return NULL;
    *bytes = shape.key_bytes;
    return transact_map_key_at(&map, &shape, word);
}

static u8 *get(u32 c, u32 step, u64 key, int stores)
{
    core[c].step = step;
    return transact_map_get(&core[c], &map, &shape, &key, transact_map_token(&map, &shape, &key), 0, stores);
}

static u8 *put(u32 c, u32 step, u64 key, u64 value)
{
    core[c].step = step;
    return transact_map_put(&core[c], &map, &shape, &key, transact_map_token(&map, &shape, &key), (const u8 *)&value);
}

static void begin(u32 c)
{
    core[c].time = 1;
    transact_begin(&core[c]);
}

static int commit(u32 c)
{
    int done = transact_commit(&core[c]);

    if (done)
        transact_end(&core[c]);
    return done;
}

/* The last that was handed over, and how many there were. */
static struct mr_conflict told;
static u64 told_key;
static u32 handed;

static void take(void *context, const struct mr_conflict *conflict)
{
    (void)context;
    handed++;
    told = *conflict;
    told_key = conflict->key ? mr_load64(conflict->key) : 0;
}

/* Core 0 has met this, and nothing else, since the last time. */
static void met(u32 mine, u32 theirs, u32 at)
{
    transact_again(&core[0]);
    handed = 0;
    conflicts_hand(&conflicts[0], key_of, NULL, take, NULL);
    CHECK(handed == 1);
    CHECK(told.mine == mine && told.theirs == theirs && told.what == at && told.count == 1);
    memset(&conflicts[0], 0, sizeof conflicts[0]);
    core[0].attempts = 0;
}

static void store(u8 *value, u64 n) { mr_store64(value, n); }

int main(void)
{
    struct mr_config config = check_config;
    u8 *value;

    config.workers = 2;
    CHECK(lock_create(&lock, 2) == 0 && transact_map_create(&map, &shape, &config) == 0);
    for (u32 c = 0; c < 2; c++) {
        transact_create(&core[c], &lock, c);
        core[c].conflicts = &conflicts[c];
        core[c].what = what;
        lock_read(&lock, c);
    }
    begin(1);
    CHECK(put(1, 7, 1, 10) != MR_RESTART && commit(1));

    /* A get, and a store by another. */
    begin(0);
    CHECK(get(0, 11, 1, 0) != NULL);
    begin(1);
    value = get(1, 22, 1, 1);
    store(value, 11);
    CHECK(commit(1) && !commit(0));
    met(11, 22, MR_CONFLICT_ENTRY);
    CHECK(told_key == 1 && told.key_bytes == 8);

    /* Two stores. */
    begin(0);
    value = get(0, 14, 1, 1);
    store(value, 12);
    begin(1);
    value = get(1, 25, 1, 1);
    store(value, 13);
    CHECK(commit(1) && !commit(0));
    met(14, 25, MR_CONFLICT_ENTRY);

    /* A miss, and an insertion; and two insertions. */
    begin(0);
    CHECK(get(0, 12, 2, 0) == NULL);
    begin(1);
    CHECK(put(1, 23, 2, 1) != MR_RESTART && commit(1) && !commit(0));
    met(12, 23, MR_CONFLICT_BUCKET);
    begin(0);
    CHECK(put(0, 13, 3, 1) != MR_RESTART);
    begin(1);
    CHECK(put(1, 24, 3, 2) != MR_RESTART && commit(1) && !commit(0));
    met(13, 24, MR_CONFLICT_BUCKET);

    /* Of several operations the one whose word changed, though the last is another. */
    begin(0);
    CHECK(get(0, 15, 1, 0) != NULL && get(0, 16, 2, 0) != NULL);
    begin(1);
    value = get(1, 26, 1, 1);
    store(value, 99);
    CHECK(commit(1) && !commit(0));
    met(15, 26, MR_CONFLICT_ENTRY);

    /* An entry that is taken at that moment. */
    begin(0);
    {
        u64 *word = transact_map_word(&map, &shape, 0), seen = 0;

        for (u32 i = 0; i < shape.capacity; i++)
            if (*transact_map_key(&map, &shape, i) == 1)
                word = transact_map_word(&map, &shape, i);
        seen = *word;
        *word |= TRANSACT_TAKEN;
        CHECK(get(0, 17, 1, 0) == MR_RESTART);
        *word = seen;
    }
    met(17, 26, MR_CONFLICT_ENTRY);
    transact_map_destroy(&map, &shape);

    /* An entry that a later packet wrote. */
    shape.timed = 1;
    CHECK(transact_map_create(&map, &shape, &config) == 0);
    begin(1);
    core[1].time = 9;
    CHECK(put(1, 27, 5, 1) != MR_RESTART && commit(1));
    begin(0);
    CHECK(get(0, 18, 5, 0) == MR_RESTART);
    met(18, 27, MR_CONFLICT_ENTRY);
    CHECK(told_key == 5);

    /* A majority of keys. */
    for (u32 i = 0; i < 10; i++)
        conflicts_note(&conflicts[1], 1, 2, MR_CONFLICT_ENTRY, i % 3 ? (const void *)&map : (const void *)&lock, 5);
    CHECK(conflicts[1].at[(31 + 14) % CONFLICTS].count == 10 && conflicts[1].at[(31 + 14) % CONFLICTS].word == &map &&
          conflicts[1].at[(31 + 14) % CONFLICTS].ticks == 50);
    /* More pairs than there are places are lost, and counted. */
    for (u32 i = 0; i < CONFLICTS + 10; i++)
        conflicts_note(&conflicts[1], i + 10, i, 0, NULL, 0);
    CHECK(conflicts[1].lost == 11);
    transact_map_destroy(&map, &shape);
    lock_destroy(&lock);
    return check_report();
}
